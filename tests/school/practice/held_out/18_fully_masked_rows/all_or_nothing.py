# mistake: returns zeros only if the whole mask is empty, so single empty rows stay NaN.
import math

import torch


def masked_attention(q, k, v, mask):
    scores = q @ k.transpose(-2, -1) / math.sqrt(q.shape[-1])
    if not mask.any():
        weights = torch.zeros_like(scores)
    else:
        weights = scores.masked_fill(~mask, -math.inf).softmax(dim=-1)
    return weights @ v, weights
