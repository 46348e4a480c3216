# mistake: off by one: <= counts one padding token as real
import math

import torch


def padding_mask(lengths, length):
    return torch.arange(length) <= lengths[:, None, None]


def attention(q, k, v, mask):
    scores = q @ k.transpose(-2, -1) / math.sqrt(q.shape[-1])
    weights = scores.masked_fill(~mask, -math.inf).softmax(dim=-1)
    return weights @ v, weights
