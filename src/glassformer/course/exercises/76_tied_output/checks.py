"""The middle is a small layer with parameters, so that skipping it shows."""

from collections.abc import Iterator
from typing import Any

from torch import nn

from glassformer.school.practice.cases import Case, Draw, battery


def inputs(draw: Draw) -> dict[str, Any]:
    B, L, C = draw.sizes(3)
    vocab_size = draw.size(10, 14)
    return {"tokens": draw.integers(0, vocab_size, B, L), "vocab_size": vocab_size, "dim": C}


def build(m: Any, vocab_size: int, dim: int) -> nn.Module:
    return m.TiedModel(vocab_size, dim, nn.Sequential(nn.Linear(dim, dim), nn.Tanh()))


def cases(draw: Draw) -> Iterator[Case]:
    yield from battery(
        draw, inputs, lambda model, tokens: model(tokens), names=("logits",), build=build
    )
