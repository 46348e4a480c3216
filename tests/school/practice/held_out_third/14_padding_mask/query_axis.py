# mistake: the mask has the shape (B, length, 1), so it masks queries
import math

import torch


def padding_mask(lengths, length):
    return (torch.arange(length) < lengths[:, None])[:, :, None]


def attention(q, k, v, mask):
    scores = q @ k.transpose(-2, -1) / math.sqrt(q.shape[-1])
    weights = torch.where(mask, scores, -math.inf).softmax(-1)
    return weights @ v, weights
