# mistake: adds −∞ and cleans the weights afterwards, so the gradient of an empty row is NaN.
import math

import torch


def masked_attention(q, k, v, mask):
    bias = torch.zeros(mask.shape, dtype=q.dtype).masked_fill(~mask, -math.inf)
    scores = q @ k.transpose(-2, -1) / math.sqrt(q.shape[-1]) + bias
    weights = torch.nan_to_num(scores.softmax(dim=-1))
    return weights @ v, weights
