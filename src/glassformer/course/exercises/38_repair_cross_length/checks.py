"""First equal lengths, where the fault hides; then a longer and a shorter context."""

from collections.abc import Iterator
from typing import Any

from torch import Tensor

from glassformer.school.practice.cases import Case, Draw, battery


def inputs(draw: Draw, extra: int | None = None) -> dict[str, Any]:
    B, L, H, D = draw.sizes(4, low=3, high=7)
    extra = draw.choice([-2, -1, 1, 2]) if extra is None else extra
    x, context = draw.normal(B, L, H * D), draw.normal(B, L + extra, H * D)
    return {"x": x, "context": context, "dim": H * D, "n_heads": H}


def run_whole(m: Any, x: Tensor, context: Tensor, dim: int, n_heads: int, key: int) -> Any:
    return Draw(key).weights(m.CrossAttention(dim, n_heads).double())(x, context)


def cases(draw: Draw) -> Iterator[Case]:
    yield Case("same_length", run_whole, {**inputs(draw, 0), "key": draw.key()}, ("out",))
    for extra in (3, -1):
        yield Case("lengths", run_whole, {**inputs(draw, extra), "key": draw.key()}, ("out",))
    yield from battery(
        draw,
        inputs,
        lambda model, x, context: model(x, context),
        build=lambda m, dim, n_heads: m.CrossAttention(dim, n_heads),
    )
