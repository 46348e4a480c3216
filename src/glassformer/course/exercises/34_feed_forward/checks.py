"""The usual battery, and each token without its neighbours."""

from collections.abc import Iterator
from typing import Any

from torch import Tensor

from glassformer.school.practice.cases import Case, Draw, battery


def inputs(draw: Draw) -> dict[str, Any]:
    B, L, C = draw.sizes(3)
    return {"x": draw.normal(B, L, C), "dim": C, "hidden_dim": draw.size(9, 13)}


def run_last_token(m: Any, x: Tensor, dim: int, hidden_dim: int, key: int) -> Any:
    model = Draw(key).weights(m.FeedForward(dim, hidden_dim).double())
    return model(x[:, -1:])


def cases(draw: Draw) -> Iterator[Case]:
    yield from battery(
        draw,
        inputs,
        lambda model, x: model(x),
        build=lambda m, dim, hidden_dim: m.FeedForward(dim, hidden_dim),
    )
    yield Case("alone", run_last_token, {**inputs(draw), "key": draw.key()}, ("out",))
