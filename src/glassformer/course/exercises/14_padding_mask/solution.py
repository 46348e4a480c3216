"""A mask of the real tokens, and attention that ignores the rest."""

import math

import torch
from torch import Tensor


def padding_mask(lengths: Tensor, length: int) -> Tensor:
    """mask[b, 0, j] = j < lengths[b]"""
    places = torch.arange(length, device=lengths.device)
    return places < lengths[:, None, None]  # (S) < (B, 1, 1) → (B, 1, S)


def attention(q: Tensor, k: Tensor, v: Tensor, mask: Tensor) -> tuple[Tensor, Tensor]:
    """weights = softmax(q kᵀ / √D where mask is True, −∞ elsewhere); returns (out, weights)"""
    scores = q @ k.transpose(-2, -1) / math.sqrt(q.shape[-1])  # (B, L, S)
    # Before softmax: exp(−∞) = 0, so a masked key is missing from the denominator too.
    scores = scores.masked_fill(~mask, -math.inf)
    weights = scores.softmax(dim=-1)
    return weights @ v, weights
