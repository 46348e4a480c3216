"""Layer normalisation: every token is brought to mean 0 and variance 1 over its own width."""

import torch
from jaxtyping import Float
from torch import Tensor, nn


class LayerNorm(nn.Module):
    """Normalise the last dimension, then let the model choose a gain and a shift for each feature.

        y = (x − mean) / √(variance + eps) · weight + bias        variance = Σ (x − mean)² / C

    The variance is divided by C and not by C − 1: it describes these C numbers and estimates
    nothing beyond them. `Tensor.std` and `Tensor.var` divide by C − 1 unless told otherwise.

    >>> LayerNorm(4, eps=0.0)(torch.tensor([[1.0, 1.0, 3.0, 3.0]])).tolist()
    [[-1.0, -1.0, 1.0, 1.0]]
    """

    def __init__(self, dim: int, *, eps: float = 1e-5) -> None:
        super().__init__()
        self.eps = eps
        # Gain 1 and shift 0: it starts as the plain normalisation.
        self.weight = nn.Parameter(torch.ones(dim))
        self.bias = nn.Parameter(torch.zeros(dim))

    def forward(self, x: Float[Tensor, "... C"]) -> Float[Tensor, "... C"]:
        centred = x - x.mean(dim=-1, keepdim=True)
        variance = centred.square().mean(dim=-1, keepdim=True)
        # eps stands under the root: a token of equal numbers is divided by √eps, not by eps.
        return centred / torch.sqrt(variance + self.eps) * self.weight + self.bias
