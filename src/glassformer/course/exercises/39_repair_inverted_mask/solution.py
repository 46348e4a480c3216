"""A mask that is True where a query may attend, and code that reads it that way."""

import math

import torch
from torch import Tensor


def padding_mask(lengths: Tensor, S: int) -> Tensor:
    """True where a key is a real token: (B,) → (B, 1, S)"""
    return torch.arange(S) < lengths[:, None, None]


def attention(q: Tensor, k: Tensor, v: Tensor, mask: Tensor) -> Tensor:
    """softmax(q kᵀ / √D) v over the keys where the mask is True"""
    scores = q @ k.transpose(-2, -1) / math.sqrt(q.shape[-1])  # (B, L, S)
    # masked_fill writes where its mask is True, so it needs the opposite of "may attend".
    scores = scores.masked_fill(~mask, -math.inf)
    return scores.softmax(dim=-1) @ v
