# mistake: the output of an empty row is zero, but its returned weights are uniform
import math

import torch


def masked_attention(q, k, v, mask):
    scores = q @ k.transpose(-2, -1) / math.sqrt(q.shape[-1])
    lowest = torch.finfo(scores.dtype).min
    weights = torch.softmax(scores.masked_fill(~mask, lowest), dim=-1)
    alive = mask.any(dim=-1, keepdim=True)
    out = (weights @ v) * alive
    return out, weights
