"""A model that follows a script if it is given the script so far, and rambles otherwise."""

from collections.abc import Iterator
from typing import Any

import torch
from torch import Tensor

from glassformer.school.practice.cases import Case, Draw


class Scripted:
    """Predicts script[b, i] after begin and the first i tokens of row b; source names the row."""

    def __init__(self, script: Tensor, begin: int, vocab_size: int) -> None:
        self.script, self.begin, self.vocab_size = script.tolist(), begin, vocab_size

    def __call__(self, source: Tensor, target: Tensor) -> Tensor:
        said = [
            [self._next(self.script[row], tokens[: i + 1]) for i in range(len(tokens))]
            for (row, *_), tokens in zip(source.tolist(), target.tolist(), strict=True)
        ]
        best = torch.tensor(said)  # (B, L)
        others = torch.arange(self.vocab_size) * 7 % self.vocab_size / self.vocab_size
        one_hot = torch.nn.functional.one_hot(best, self.vocab_size)
        return others - 3 + 5 * one_hot

    def _next(self, script: list[int], tokens: list[int]) -> int:
        n = len(tokens) - 1
        if tokens == [self.begin, *script[:n]] and n < len(script):
            return script[n]
        step = 1 + sum(tokens[:-1]) % (self.vocab_size - 4)  # never the same token twice in a row
        return 3 + (tokens[-1] - 3 + step) % (self.vocab_size - 3)


def call(m: Any, script: Tensor, source: Tensor, max_new: int, vocab_size: int) -> Any:
    begin, end, pad = 1, 2, 0
    return m.greedy(Scripted(script, begin, vocab_size), source, begin, end, pad, max_new)


def draw_scripts(draw: Draw, lengths: list[int], max_new: int) -> dict[str, Any]:
    """Scripts of the given lengths, each with its end token; adjacent words differ."""
    B, N, V = len(lengths), max(lengths), 13
    words = 3 + (draw.integers(0, V - 3, B, 1) + draw.integers(1, V - 3, B, N).cumsum(1)) % (V - 3)
    for row, length in zip(words, lengths, strict=True):
        row[length - 1] = 2
    source = torch.cat([torch.arange(B)[:, None], draw.integers(3, V, B, 4)], dim=1)
    return {"script": words, "source": source, "max_new": max_new, "vocab_size": V}


def cases(draw: Draw) -> Iterator[Case]:
    for _ in range(2):
        lengths = draw.sizes(4, low=3, high=9)
        given = draw_scripts(draw, lengths, max(lengths) + 3)
        yield Case("ends", call, given, ("tokens",))
    lengths = draw.sizes(3, low=6, high=12)
    yield Case("cut", call, draw_scripts(draw, lengths, 4), ("tokens",))
    yield Case("one", call, draw_scripts(draw, [draw.size(3, 8)], 12), ("tokens",))
