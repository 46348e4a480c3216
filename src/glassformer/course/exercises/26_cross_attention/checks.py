"""All sizes differ; then two agree at a time, so that mistakes that raise can be distinguished."""

from collections.abc import Iterator
from typing import Any

from torch import Tensor

from glassformer.school.practice.cases import Case, Draw, battery

SIZES = ("dim", "context_dim", "n_heads", "head_dim", "value_dim")


def inputs(draw: Draw, **same: bool) -> dict[str, Any]:
    B, L, S, H, D, E = draw.sizes(6)
    dim, context_dim = draw.sizes(2, low=9, high=12)
    S = L if same.get("length") else S
    E = D if same.get("width") else E
    context_dim = dim if same.get("dim") else context_dim
    tensors = {"x": draw.normal(B, L, dim), "context": draw.normal(B, S, context_dim)}
    return tensors | dict(zip(SIZES, (dim, context_dim, H, D, E), strict=True))


def build(m: Any, **sizes: int) -> Any:
    return m.CrossAttention(*(sizes[name] for name in SIZES))


def run_whole(m: Any, x: Tensor, context: Tensor, key: int, **sizes: int) -> Any:
    return Draw(key).weights(build(m, **sizes).double())(x, context)


def cases(draw: Draw) -> Iterator[Case]:
    names = ("out", "weights")
    yield from battery(
        draw, inputs, lambda model, x, context: model(x, context), build=build, names=names
    )
    for case, same in (
        ("same_length", {"length": True}),
        ("same_width", {"width": True}),
        ("same_dim", {"dim": True}),
        ("same_dim", {"dim": True, "length": True}),
    ):
        yield Case(case, run_whole, {**inputs(draw, **same), "key": draw.key()}, names)
