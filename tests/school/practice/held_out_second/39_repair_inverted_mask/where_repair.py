# correct: repairs attention with torch.where instead of ~mask
import math

import torch


def padding_mask(lengths, S):
    """True where a key is a real token: (B,) → (B, 1, S)"""
    return torch.arange(S) < lengths[:, None, None]


def attention(q, k, v, mask):
    """softmax(q kᵀ / √D) v over the keys where the mask is True"""
    scores = q @ k.transpose(-2, -1) / math.sqrt(q.shape[-1])
    scores = torch.where(mask, scores, torch.full_like(scores, -math.inf))
    return scores.softmax(dim=-1) @ v
