"""The usual battery; and a block whose layers add nothing, which must be the identity."""

from collections.abc import Iterator
from typing import Any

import torch
from torch import Tensor

from glassformer.school.practice.cases import Case, Draw, battery


def inputs(draw: Draw) -> dict[str, Any]:
    B, L, C = draw.sizes(3, low=3)
    return {"x": 1 + 2 * draw.normal(B, L, C), "dim": C, "hidden_dim": draw.size(9, 13)}


def add_nothing(m: Any, x: Tensor, dim: int, hidden_dim: int, key: int) -> Any:
    model = Draw(key).weights(m.Block(dim, hidden_dim).double())
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            if "norm" not in name:
                parameter.zero_()
        return model(x)


def cases(draw: Draw) -> Iterator[Case]:
    yield Case("nothing", add_nothing, {**inputs(draw), "key": draw.key()}, ("out",))
    yield from battery(
        draw,
        inputs,
        lambda model, x: model(x),
        build=lambda m, dim, hidden_dim: m.Block(dim, hidden_dim),
    )
