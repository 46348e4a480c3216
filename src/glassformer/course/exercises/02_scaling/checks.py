"""All sizes differ, so that a length cannot pass for the width."""

from collections.abc import Iterator
from typing import Any

from glassformer.school.practice.cases import Case, Draw, battery


def inputs(draw: Draw) -> dict[str, Any]:
    B, L, S, D = draw.sizes(4)
    return {"q": draw.normal(B, L, D), "k": draw.normal(B, S, D)}


def cases(draw: Draw) -> Iterator[Case]:
    yield from battery(draw, inputs, lambda m, q, k: m.scaled_scores(q, k), names=("scores",))
