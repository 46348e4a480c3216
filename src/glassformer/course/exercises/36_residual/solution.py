"""The residual connection and the norm, in both orders."""

from collections.abc import Callable

from torch import Tensor

Layer = Callable[[Tensor], Tensor]


def post_norm(x: Tensor, sublayer: Layer, norm: Layer) -> Tensor:
    """Add, then normalize the sum."""
    return norm(x + sublayer(x))


def pre_norm(x: Tensor, sublayer: Layer, norm: Layer) -> Tensor:
    """Normalize what the sublayer reads, then add to x."""
    return x + sublayer(norm(x))
