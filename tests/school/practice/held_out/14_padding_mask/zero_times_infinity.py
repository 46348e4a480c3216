# mistake: multiplies the inverted mask by −∞, and 0 · ∞ is NaN.
import math

import torch


def padding_mask(lengths, length):
    return torch.arange(length) < lengths.view(-1, 1, 1)


def attention(q, k, v, mask):
    scores = q @ k.transpose(-2, -1) / math.sqrt(q.shape[-1])
    scores = scores + (1.0 - mask.float()) * float("-inf")
    weights = scores.softmax(dim=-1)
    return weights @ v, weights
