"""Masking by addition."""

import math

import torch
from torch import Tensor


def causal_bias(length: int) -> Tensor:
    """0 on and below the diagonal, −∞ above it"""
    # Not ones times −∞: 0 · ∞ is NaN.
    return torch.full((length, length), -math.inf).triu(diagonal=1)


def causal_weights(scores: Tensor) -> Tensor:
    """softmax(scores + bias)"""
    bias = causal_bias(scores.shape[-1]).to(scores)
    return (scores + bias).softmax(dim=-1)
