# mistake: masked_fill without underscore returns a new tensor, and the result is dropped.
import math

import torch


def padding_mask(lengths, length):
    return torch.arange(length) < lengths[:, None, None]


def attention(q, k, v, mask):
    scores = q @ k.transpose(-2, -1) / math.sqrt(q.shape[-1])
    scores.masked_fill(~mask, -math.inf)
    weights = scores.softmax(dim=-1)
    return weights @ v, weights
