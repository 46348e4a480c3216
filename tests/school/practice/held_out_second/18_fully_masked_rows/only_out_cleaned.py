# mistake: replaces NaN only in the output and returns the weights with NaN
import math

import torch


def masked_attention(q, k, v, mask):
    scores = q @ k.transpose(-2, -1) / math.sqrt(q.shape[-1])
    weights = scores.masked_fill(~mask, -math.inf).softmax(dim=-1)
    out = torch.nan_to_num(weights @ v)
    return out, weights
