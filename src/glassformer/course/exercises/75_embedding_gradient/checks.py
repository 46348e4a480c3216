"""Few tokens, so that most of them occur several times."""

from collections.abc import Iterator
from typing import Any

from torch import Tensor

from glassformer.school.practice.cases import Case, Draw, battery


def inputs(draw: Draw) -> dict[str, Any]:
    B, L, C = draw.sizes(3, low=3)
    vocab_size = draw.size(9, 11)
    tokens = draw.integers(1, 5, B, L)  # some rows of the vocabulary are never read
    # Which of the two is written last depends on the order in memory: there `=` and `+=` differ.
    tokens[0, -1] = tokens[-1, 0] = 0
    return {"tokens": tokens, "grad_out": draw.normal(B, L, C), "vocab_size": vocab_size}


def call(m: Any, tokens: Tensor, grad_out: Tensor, vocab_size: int) -> Any:
    return m.embedding_gradient(tokens, grad_out, vocab_size)


def cases(draw: Draw) -> Iterator[Case]:
    yield from battery(
        draw, inputs, call, names=("grad",), variants=("values", "strided", "float32")
    )
