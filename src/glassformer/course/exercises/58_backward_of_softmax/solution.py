"""The gradient of softmax, by hand."""

from torch import Tensor


def softmax_backward(weights: Tensor, grad: Tensor) -> Tensor:
    """∂loss/∂s_j = w_j (grad_j − Σ_i w_i grad_i)"""
    mean = (weights * grad).sum(dim=-1, keepdim=True)  # (..., 1): the weighted mean of the row
    return weights * (grad - mean)  # (..., S)
