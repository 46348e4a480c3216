"""Without dropout; and with one whose mask is fixed, so that nothing depends on random numbers."""

from collections.abc import Iterator
from typing import Any

from torch import Tensor, nn

from glassformer.practice.cases import Case, Draw, battery


class FixedDropout(nn.Module):
    """Drops by a pattern, and scales up what is left, as nn.Dropout does."""

    def forward(self, x: Tensor) -> Tensor:
        kept = x.new_ones(x.numel())
        kept[::3] = 0
        return x * kept.view(x.shape) * 1.5


def inputs(draw: Draw) -> dict[str, Any]:
    B, L, S, D, E = draw.sizes(5)
    return {"q": draw.normal(B, L, D), "k": draw.normal(B, S, D), "v": draw.normal(B, S, E)}


def cases(draw: Draw) -> Iterator[Case]:
    names = ("out", "weights")
    yield from battery(draw, inputs, lambda m, q, k, v: m.attention(q, k, v), names=names)

    def dropped(m: Any, q: Tensor, k: Tensor, v: Tensor) -> Any:
        return m.attention(q, k, v, FixedDropout())

    yield Case("dropout", dropped, inputs(draw), names)

    def nothing_left(m: Any, q: Tensor, k: Tensor, v: Tensor) -> Any:
        return m.attention(q, k, v, dropout=nn.Dropout(1.0))

    yield Case("everything", nothing_left, inputs(draw), names)
