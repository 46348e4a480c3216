# mistake: turns the mask in attention round, but fills in 0 instead of −∞
import math

import torch


def padding_mask(lengths, S):
    return torch.arange(S) < lengths[:, None, None]


def attention(q, k, v, mask):
    scores = q @ k.transpose(-2, -1) / math.sqrt(q.shape[-1])
    scores = scores.masked_fill(~mask, 0)
    return scores.softmax(dim=-1) @ v
