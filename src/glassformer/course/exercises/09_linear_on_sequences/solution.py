"""What a linear layer does."""

from torch import Tensor


def linear(x: Tensor, weight: Tensor, bias: Tensor | None = None) -> Tensor:
    """y[..., f] = Σ_c x[..., c] · weight[f, c] + bias[f]"""
    y = x @ weight.T  # (..., C) × (C, F) → (..., F)
    return y if bias is None else y + bias
