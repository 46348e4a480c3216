"""Layer normalization: mean 0 and variance 1 over the features of each token."""

import torch
from jaxtyping import Float
from torch import Tensor, nn


class LayerNorm(nn.Module):
    """Normalize the last dimension, then apply a learned gain and shift per feature.

        y = (x − mean) / √(variance + eps) · weight + bias        variance = Σ (x − mean)² / C

    The variance is divided by C, not C − 1: it describes these C numbers and is not an estimate.
    `Tensor.std` and `Tensor.var` divide by C − 1 by default.

    >>> LayerNorm(4, eps=0.0)(torch.tensor([[1.0, 1.0, 3.0, 3.0]])).tolist()
    [[-1.0, -1.0, 1.0, 1.0]]
    """

    def __init__(self, dim: int, *, eps: float = 1e-5) -> None:
        super().__init__()
        self.eps = eps
        # Gain 1 and shift 0: plain normalization at first.
        self.weight = nn.Parameter(torch.ones(dim))
        self.bias = nn.Parameter(torch.zeros(dim))

    def forward(self, x: Float[Tensor, "... C"]) -> Float[Tensor, "... C"]:
        centred = x - x.mean(dim=-1, keepdim=True)
        variance = centred.square().mean(dim=-1, keepdim=True)
        # eps is under the root: a token of equal numbers is divided by √eps, not by eps.
        return centred / torch.sqrt(variance + self.eps) * self.weight + self.bias
