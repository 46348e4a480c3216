"""Softmax with the maximum taken off first."""

import torch
from torch import Tensor


def softmax(scores: Tensor) -> Tensor:
    """weights[..., j] = exp(scores[..., j]) / Σ_k exp(scores[..., k])"""
    # The same number may be taken off a whole row; off the largest, no exp exceeds 1.
    shifted = scores - scores.amax(dim=-1, keepdim=True)
    exps = torch.exp(shifted)
    return exps / exps.sum(dim=-1, keepdim=True)
