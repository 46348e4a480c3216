"""Logits of both signs; every text has seen other tokens, some of them several times."""

from collections.abc import Iterator
from typing import Any

from torch import Tensor

from glassformer.school.practice.cases import Case, Draw


def call(m: Any, logits: Tensor, seen: Tensor, penalty: float) -> Any:
    return m.penalize(logits.clone(), seen, penalty)


def call_and_compare(m: Any, logits: Tensor, seen: Tensor, penalty: float) -> Any:
    given = logits.clone()
    out = m.penalize(given, seen, penalty)
    return out, (given - logits).abs().max().item()


def draw_inputs(draw: Draw, n_seen: int) -> dict[str, Any]:
    B, V = draw.size(3, 5), draw.size(9, 13)
    seen = draw.normal(B, V).argsort(-1)[:, :n_seen]  # tokens that differ, in each row others
    return {
        "logits": draw.normal(B, V, scale=2.0),
        "seen": seen,
        "penalty": draw.choice([1.2, 1.5, 2.0]),
    }


def cases(draw: Draw) -> Iterator[Case]:
    for n in (3, 5):
        yield Case("mixed", call, draw_inputs(draw, n), ("logits",))
    for n in (2, 3):
        given = draw_inputs(draw, n)
        given["seen"] = given["seen"].repeat(1, 3)
        yield Case("often", call, given, ("logits",))
    names = ("logits", "change of the input")
    yield Case("unchanged", call_and_compare, draw_inputs(draw, 4), names)
