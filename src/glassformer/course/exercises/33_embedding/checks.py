"""Vocabulary and width differ, and token 0 always occurs."""

from collections.abc import Iterator
from typing import Any

import torch

from glassformer.school.practice.cases import Case, Draw, battery


def inputs(draw: Draw) -> dict[str, Any]:
    B, L, C = draw.sizes(3)
    vocab_size = draw.size(10, 14)
    tokens = torch.cat([draw.integers(0, vocab_size, B, L - 1), torch.zeros(B, 1).long()], dim=1)
    return {"tokens": tokens, "vocab_size": vocab_size, "dim": C}


def cases(draw: Draw) -> Iterator[Case]:
    yield from battery(
        draw,
        inputs,
        lambda model, tokens: model(tokens),
        build=lambda m, vocab_size, dim: m.Embedding(vocab_size, dim),
    )
