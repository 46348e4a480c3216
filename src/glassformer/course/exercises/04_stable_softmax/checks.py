"""Small numbers, large ones, rows far apart, and −∞."""

import math
from collections.abc import Iterator
from typing import Any

from glassformer.school.practice.cases import Case, Draw, battery


def inputs(draw: Draw) -> dict[str, Any]:
    B, L, S = draw.sizes(3)
    return {"scores": draw.normal(B, L, S)}


def call(m: Any, scores: Any) -> Any:
    return m.softmax(scores)


def cases(draw: Draw) -> Iterator[Case]:
    yield from battery(draw, inputs, call, names=("weights",))
    L, S = draw.sizes(2, low=3)
    yield Case("large", call, {"scores": draw.normal(L, S) + 10_000}, ("weights",))
    apart = draw.normal(L, S) + 5_000.0 * draw.integers(-2, 3, L, 1)
    apart[0], apart[1] = apart[0] + 20_000, apart[1] - 20_000
    yield Case("apart", call, {"scores": apart}, ("weights",))
    hidden = draw.normal(L, S).masked_fill(~draw.mask(L, S), -math.inf)
    yield Case("hidden", call, {"scores": hidden}, ("weights",))
