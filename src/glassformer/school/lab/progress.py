"""How far a measurement is: a function that is told a share between 0 and 1."""

from collections.abc import Callable, Iterator, Sequence
from typing import TypeVar

Progress = Callable[[float | int], None]
Thing = TypeVar("Thing")


def part(progress: Progress, start: float | int, stop: float | int) -> Progress:
    """The progress of a part, as progress of the whole.

    >>> part(print, 0.5, 1.0)(0.5)
    0.75
    """
    return lambda share: progress(start + (stop - start) * share)


def each(things: Sequence[Thing], progress: Progress) -> Iterator[tuple[Thing, Progress]]:
    """Every thing, with the progress of its own part.

    >>> for name, own in each("ab", print):
    ...     own(1.0)
    0.0
    0.5
    0.5
    1.0
    """
    n = len(things)
    for i, thing in enumerate(things):
        own = part(progress, i / n, (i + 1) / n)
        own(0.0)
        yield thing, own
