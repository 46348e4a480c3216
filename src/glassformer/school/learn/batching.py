"""Requests in batches over time: static batches wait for their longest, continuous ones do not."""

from collections.abc import Sequence

import torch

from glassformer.languages import Language
from glassformer.school.learn.picture import Album, Matrix, Picture, Row

LENGTHS = (3, 9, 2, 7, 4, 8, 3, 5)  # tokens that each request needs
_HELD = 0.25  # the shade of a slot that is held by a request that has ended

Stay = tuple[int, int, int]  # when a request begins, when it has ended, when its slot is free


def batch_statically(lengths: Sequence[int], slots: int) -> list[Stay]:
    """As many requests as there are slots; the next ones begin when all of them have ended.

    >>> batch_statically([1, 3, 2], 2)
    [(0, 1, 3), (0, 3, 3), (3, 5, 5)]
    """
    stays: list[Stay] = []
    start = 0
    for first in range(0, len(lengths), slots):
        group = lengths[first : first + slots]
        stays += [(start, start + n, start + max(group)) for n in group]
        start += max(group)
    return stays


def batch_continuously(lengths: Sequence[int], slots: int) -> list[Stay]:
    """Each request begins as soon as any slot is free.

    >>> batch_continuously([1, 3, 2], 2)
    [(0, 1, 1), (0, 3, 3), (1, 3, 3)]
    """
    free = [0] * slots
    stays: list[Stay] = []
    for n in lengths:
        slot = free.index(min(free))
        stays.append((free[slot], free[slot] + n, free[slot] + n))
        free[slot] += n
    return stays


def draw_batching(language: Language) -> Picture:
    """Both ways with three, four and five slots."""
    say = language.say

    def matrix(stays: list[Stay], key: str) -> Matrix:
        steps = max(free for _, _, free in stays)
        values = torch.zeros(len(stays), steps)
        for row, (start, end, free) in zip(values, stays, strict=True):
            row[start:end], row[end:free] = 1.0, _HELD
        names = tuple("ABCDEFGH"[: len(stays)])
        return Matrix("weights", values, names, (), say(key, steps=steps))

    return Album(
        tuple(
            (
                say("learn.picture.slots", n=slots),
                Row(
                    (
                        matrix(batch_statically(LENGTHS, slots), "learn.picture.static"),
                        matrix(batch_continuously(LENGTHS, slots), "learn.picture.continuous"),
                    )
                ),
            )
            for slots in (3, 4, 5)
        )
    )
