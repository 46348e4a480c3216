"""The gradient of a lookup: what arrives at a token is added to its row."""

import torch
from torch import Tensor


def embedding_gradient(tokens: Tensor, grad_out: Tensor, vocab_size: int) -> Tensor:
    """∂loss/∂weight of out = weight[tokens]: (B, L), (B, L, C) → (V, C)"""
    grad = torch.zeros(vocab_size, grad_out.shape[-1], dtype=grad_out.dtype)
    return grad.index_add(0, tokens.flatten(), grad_out.flatten(0, 1))
