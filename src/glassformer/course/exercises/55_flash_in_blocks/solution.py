"""Exact attention without its matrix."""

import math

import torch
from torch import Tensor


def flash_attention(q: Tensor, k: Tensor, v: Tensor, block: int) -> tuple[Tensor, Tensor]:
    """out = softmax(q kᵀ / √D) v and lse, one block of keys at a time"""
    top = torch.full_like(q[..., 0], -torch.inf)  # (..., L)
    total = torch.zeros_like(top)
    out = q.new_zeros(*q.shape[:-1], v.shape[-1])  # (..., L, E)
    for keys, values in zip(k.split(block, dim=-2), v.split(block, dim=-2), strict=True):
        scores = q @ keys.transpose(-2, -1) / math.sqrt(q.shape[-1])  # (..., L, block)
        new = torch.maximum(top, scores.amax(dim=-1))
        factor = (top - new).exp()  # from the old top to the new one; 0 in the first block
        weights = (scores - new[..., None]).exp()
        total = total * factor + weights.sum(dim=-1)
        out = out * factor[..., None] + weights @ values
        top = new
    return out / total[..., None], top + total.log()
