"""Numbers of ordinary size, on which every weight counts; and large ones, which must not overflow.

Scores so large that one weight is 1 and all others 0 cannot tell softmax from argmax, nor whether
there was a scale: they are not the only inputs here.
"""

from collections.abc import Iterator
from typing import Any

from glassformer.school.practice.cases import Case, Draw, battery


def inputs(draw: Draw) -> dict[str, Any]:
    L, D, E = draw.sizes(3)
    return {"Q": draw.array(L, D), "K": draw.array(L, D), "V": draw.array(L, E)}


def call(m: Any, Q: Any, K: Any, V: Any) -> Any:
    return m.self_attention(Q, K, V)


def cases(draw: Draw) -> Iterator[Case]:
    yield from battery(draw, inputs, call)
    L, D = draw.sizes(2)
    same = {"Q": draw.array(L, D), "K": draw.array(L, D), "V": draw.array(L, D)}
    yield Case("example", call, same, ("out",))
    large = {"Q": draw.array(L, D, scale=400), "K": draw.array(L, D, scale=400)}
    yield Case("large", call, {**large, "V": draw.array(L, D)}, ("out",))
