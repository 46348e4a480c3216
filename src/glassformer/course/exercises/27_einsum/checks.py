"""All six sizes differ; then L = S, where more wrong letters fit."""

from collections.abc import Iterator
from typing import Any

from torch import Tensor

from glassformer.school.practice.cases import Case, Draw, battery


def inputs(draw: Draw, same_length: bool = False) -> dict[str, Tensor]:
    B, L, S, C, H, D = draw.sizes(6)
    S = L if same_length else S
    return {
        "x": draw.normal(B, L, C),
        "context": draw.normal(B, S, C),
        "w_q": draw.normal(H, C, D, scale=C**-0.5),
        "w_k": draw.normal(H, C, D, scale=C**-0.5),
        "w_v": draw.normal(H, C, D, scale=C**-0.5),
        "w_o": draw.normal(H, D, C, scale=(H * D) ** -0.5),
    }


def call(m: Any, **given: Tensor) -> Any:
    return m.multi_head(**given)


def cases(draw: Draw) -> Iterator[Case]:
    names = ("out", "weights")
    # Not the battery's "batch": it would slice the heads of the matrices too.
    yield from battery(draw, inputs, call, names=names, skip=("batch",))
    given = inputs(draw)
    last = {**given, "x": given["x"][-1:], "context": given["context"][-1:]}
    yield Case("batch", call, last, names)
    yield Case("same_length", call, inputs(draw, same_length=True), names)
