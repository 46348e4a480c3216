# mistake: sets the weights of masked keys to 0 after softmax, so rows no longer sum to 1.
import math

import torch


def padding_mask(lengths, length):
    return torch.arange(length)[None, None, :] < lengths[:, None, None]


def attention(q, k, v, mask):
    scores = q @ k.transpose(-2, -1) / math.sqrt(q.shape[-1])
    weights = scores.softmax(dim=-1) * mask
    return weights @ v, weights
