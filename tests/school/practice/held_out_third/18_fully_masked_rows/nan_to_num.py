# mistake: nan_to_num repairs the forward pass, but -inf is added instead of filled in: the gradient is NaN
import math

import torch


def masked_attention(q, k, v, mask):
    scores = q @ k.transpose(-2, -1) / math.sqrt(q.shape[-1])
    bias = torch.zeros_like(scores).masked_fill(~mask, -math.inf)
    weights = torch.nan_to_num((scores + bias).softmax(dim=-1))
    return weights @ v, weights
