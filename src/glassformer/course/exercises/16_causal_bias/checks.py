"""The bias cell by cell; the weights in every dtype; and a future that changes nothing."""

from collections.abc import Iterator
from typing import Any

from torch import Tensor

from glassformer.school.practice.cases import Case, Draw, battery


def inputs(draw: Draw) -> dict[str, Any]:
    B, L = draw.sizes(2)
    return {"scores": draw.normal(B, L, L)}


def change_future(m: Any, scores: Tensor, changed: Tensor, place: int) -> Any:
    before = m.causal_weights(scores)[:place, :place]
    return before - m.causal_weights(changed)[:place, :place]


def cases(draw: Draw) -> Iterator[Case]:
    given = {"length": draw.size(3)}
    yield Case("bias", lambda m, length: m.causal_bias(length), given, ("bias",))
    yield from battery(draw, inputs, lambda m, scores: m.causal_weights(scores), names=("weights",))
    L = draw.size(4)
    scores, place = draw.normal(L, L), L // 2
    changed = scores.clone()
    changed[:, place:] = draw.normal(L, L - place)
    given = {"scores": scores, "changed": changed, "place": place}
    yield Case("future", change_future, given, ("difference",))
