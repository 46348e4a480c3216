"""The sublayers are built here: heads that can be masked, two linear layers, a dropout."""

from collections.abc import Iterator
from typing import Any

from torch import Tensor, nn

from glassformer.school.practice.cases import Case, Draw, battery
from glassformer.school.practice.dropout import CERTAIN, P
from glassformer.school.practice.example_modules import Attention, FeedForward


def build(m: Any, dim: int, n_heads: int, hidden_dim: int) -> nn.Module:
    return layer(m, dim, n_heads, hidden_dim, P)


def layer(m: Any, dim: int, n_heads: int, hidden_dim: int, p: float) -> nn.Module:
    parts = Attention(dim, n_heads), FeedForward(dim, hidden_dim)
    return m.EncoderLayer(*parts, dim, nn.Dropout(p))


def inputs(draw: Draw) -> dict[str, Any]:
    B, L, D, F = draw.sizes(4)
    H = draw.choice([1, 2, 3])
    sizes = {"dim": H * D, "n_heads": H, "hidden_dim": F}
    return {"x": draw.normal(B, L, H * D), "mask": draw.mask(B, 1, L), **sizes}


def drop_everything(m: Any, x: Tensor, mask: Tensor, key: int, **sizes: int) -> Any:
    """Dropout removes the sublayers' whole output: only the residual connection is left."""
    model = layer(m, **sizes, p=CERTAIN).double()
    return Draw(key).weights(model).train()(x, mask)


def cases(draw: Draw) -> Iterator[Case]:
    call = lambda model, x, mask: model(x, mask)  # noqa: E731
    yield from battery(draw, inputs, call, build=build, skip=("bfloat16",))
    for _ in range(2):
        yield Case("dropout", drop_everything, {**inputs(draw), "key": draw.key()}, ("out",))
