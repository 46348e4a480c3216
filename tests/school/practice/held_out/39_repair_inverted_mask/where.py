# correct: torch.where keeps the scores where the mask is True
import math

import torch


def padding_mask(lengths, S):
    """True where a key is a real token: (B,) → (B, 1, S)"""
    return torch.arange(S) < lengths[:, None, None]


def attention(q, k, v, mask):
    scores = q @ k.transpose(-2, -1) / math.sqrt(q.shape[-1])
    scores = torch.where(mask, scores, -math.inf)
    return scores.softmax(dim=-1) @ v
