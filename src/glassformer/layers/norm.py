"""Norms: what keeps the sizes of activations steady from layer to layer."""

from collections.abc import Callable
from typing import Literal

import torch
from jaxtyping import Float
from torch import Tensor, nn

from glassformer.errors import ConfigError

NormKind = Literal["layer", "rms"]


class RMSNorm(nn.Module):
    """x / √(mean(x²) + eps) · weight (Zhang and Sennrich 2019): LayerNorm without the centring.

    The mean is computed in float32, and rounded to the dtype of x before the weight is applied.

    >>> RMSNorm(2)(torch.tensor([[3.0, 4.0]])) * 12.5**0.5
    tensor([[3.0000, 4.0000]], grad_fn=<MulBackward0>)
    """

    def __init__(self, dim: int, *, eps: float = 1e-6) -> None:
        super().__init__()
        self.eps = eps
        self.weight = nn.Parameter(torch.ones(dim))

    def forward(self, x: Float[Tensor, "... C"]) -> Float[Tensor, "... C"]:
        exact = x.to(torch.promote_types(x.dtype, torch.float32))
        size = exact.square().mean(-1, keepdim=True)
        return self.weight * (exact * torch.rsqrt(size + self.eps)).to(x.dtype)

    def extra_repr(self) -> str:
        return f"{len(self.weight)}, eps={self.eps}"


def norm_maker(
    kind: NormKind, dim: int, *, eps: float, bias: bool = True
) -> Callable[[], nn.Module]:
    """A function that makes norms of one kind; `bias` is LayerNorm's alone."""
    if kind == "rms":
        return lambda: RMSNorm(dim, eps=eps)
    if kind == "layer":
        return lambda: nn.LayerNorm(dim, eps=eps, bias=bias)
    raise ConfigError(f"A norm is 'layer' or 'rms'; got {kind!r}.")
