# mistake: masked scores are set to 0 instead of minus infinity
import math

import torch


def padding_mask(lengths, length):
    return torch.arange(length) < lengths[:, None, None]


def attention(q, k, v, mask):
    scores = q @ k.transpose(-2, -1) / math.sqrt(q.shape[-1])
    scores = scores * mask
    weights = torch.softmax(scores, dim=-1)
    return weights @ v, weights
