"""Without dropout; with all weights dropped; with some of them dropped."""

from collections.abc import Iterator
from typing import Any

from torch import Tensor, nn

from glassformer.school.practice.cases import Case, Draw, battery
from glassformer.school.practice.dropout import CERTAIN, P, dropped_share, multiples


def inputs(draw: Draw) -> dict[str, Any]:
    B, L, S, D, E = draw.sizes(5)
    return {"q": draw.normal(B, L, D), "k": draw.normal(B, S, D), "v": draw.normal(B, S, E)}


def one_key(draw: Draw) -> dict[str, Any]:
    """With a single key, out is v times its weight: dropout shows row by row."""
    L, D, E = draw.sizes(3)
    return {"q": draw.normal(400, L, D), "k": draw.normal(400, 1, D), "v": draw.normal(400, 1, E)}


def drop_everything(m: Any, q: Tensor, k: Tensor, v: Tensor) -> Any:
    return m.attention(q, k, v, dropout=nn.Dropout(CERTAIN))


def measure_dropout(m: Any, q: Tensor, k: Tensor, v: Tensor) -> Any:
    plain = v.expand(-1, q.shape[1], -1)
    out, weights = m.attention(q, k, v, nn.Dropout(P))
    whole_rows = "v" if ((out == 0).all(-1) == (out == 0).any(-1)).all() else "?"
    seen = (multiples(out, plain), whole_rows, dropped_share(out[..., 0]))
    evaluated = m.attention(q, k, v, nn.Dropout(P).eval())[0]
    return *seen, multiples(weights, weights.new_ones(weights.shape)), multiples(evaluated, plain)


def cases(draw: Draw) -> Iterator[Case]:
    names = ("out", "weights")
    yield from battery(draw, inputs, lambda m, q, k, v: m.attention(q, k, v), names=names)
    yield Case("everything", drop_everything, inputs(draw), names)
    seen = ("out / v", "0 · v", "P(0)", "weights / softmax", "eval: out / v")
    yield Case("dropout", measure_dropout, one_key(draw), seen)
