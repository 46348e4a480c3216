# correct: zero after softmax, then divided by the sum of the row again; the mask is filled row by row
import math

import torch


def padding_mask(lengths, length):
    mask = torch.zeros(len(lengths), 1, length, dtype=torch.bool)
    for b, n in enumerate(lengths.tolist()):
        mask[b, 0, :n] = True
    return mask


def attention(q, k, v, mask):
    scores = q @ k.transpose(-2, -1) / math.sqrt(q.shape[-1])
    low = torch.finfo(scores.dtype).min
    scores = torch.where(mask, scores, torch.full_like(scores, low))
    weights = torch.softmax(scores, -1) * mask
    weights = weights / weights.sum(-1, keepdim=True)
    return weights @ v, weights
