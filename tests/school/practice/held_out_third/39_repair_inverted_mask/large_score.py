# mistake: the mask is kept, and what may be seen is overwritten with a large score
import math

import torch


def padding_mask(lengths, S):
    return torch.arange(S) < lengths[:, None, None]


def attention(q, k, v, mask):
    scores = q @ k.transpose(-2, -1) / math.sqrt(q.shape[-1])
    scores = scores.masked_fill(mask, 1e4)
    return scores.softmax(dim=-1) @ v
