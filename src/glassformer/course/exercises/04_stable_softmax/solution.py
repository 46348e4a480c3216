"""Softmax with the maximum subtracted first."""

import torch
from torch import Tensor


def softmax(scores: Tensor) -> Tensor:
    """weights[..., j] = exp(scores[..., j]) / Σ_k exp(scores[..., k])"""
    # Subtracting one number from a whole row changes nothing; with the maximum, no exp exceeds 1.
    shifted = scores - scores.amax(dim=-1, keepdim=True)
    exps = torch.exp(shifted)
    return exps / exps.sum(dim=-1, keepdim=True)
