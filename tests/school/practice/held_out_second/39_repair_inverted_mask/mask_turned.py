# mistake: turns padding_mask round instead of attention, so that the mask is True at the padding
import math

import torch


def padding_mask(lengths, S):
    return torch.arange(S) >= lengths[:, None, None]


def attention(q, k, v, mask):
    scores = q @ k.transpose(-2, -1) / math.sqrt(q.shape[-1])
    # hide the keys that may not be seen
    scores = scores.masked_fill(mask, -math.inf)
    return scores.softmax(dim=-1) @ v
