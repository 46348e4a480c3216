"""Sentences of different lengths, padded; logits of any size."""

from collections.abc import Iterator
from typing import Any

import torch
from torch import Tensor

from glassformer.school.practice.cases import Case, Draw, battery


def sentences(draw: Draw, B: int, N: int, V: int, pad: int) -> Tensor:
    """Words, then padding; the first row is full, the others end earlier."""
    words = draw.integers(0, V - 1, B, N)
    words = words + (words >= pad)
    lengths = N - draw.integers(1, N, B)
    lengths[0] = N
    return words.where(torch.arange(N) < lengths[:, None], pad)


def inputs(draw: Draw) -> dict[str, Any]:
    B, L, V = draw.sizes(3, low=3)
    pad = draw.size(0, V - 1)
    return {"logits": draw.normal(B, L, V), "targets": sentences(draw, B, L, V, pad), "pad": pad}


def cases(draw: Draw) -> Iterator[Case]:
    for _ in range(2):
        B, N = draw.sizes(2, low=4, high=9)
        tokens = {"tokens": draw.integers(0, 1000, B, N)}
        yield Case("shift", lambda m, tokens: m.shift(tokens), tokens, ("inputs", "targets"))
    call = lambda m, logits, targets, pad: m.loss(logits, targets, pad)  # noqa: E731
    yield from battery(draw, inputs, call, names=("loss",), skip=("bfloat16", "batch"))
    large = inputs(draw)
    yield Case("large", call, {**large, "logits": large["logits"] * 1e4}, ("loss",))
