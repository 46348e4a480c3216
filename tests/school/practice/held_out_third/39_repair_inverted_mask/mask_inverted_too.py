# mistake: the padding mask is inverted instead of attention: both are consistent, but True now means padding
import math

import torch


def padding_mask(lengths, S):
    return torch.arange(S) >= lengths[:, None, None]


def attention(q, k, v, mask):
    scores = q @ k.transpose(-2, -1) / math.sqrt(q.shape[-1])
    scores = scores.masked_fill(mask, -math.inf)
    return scores.softmax(dim=-1) @ v
