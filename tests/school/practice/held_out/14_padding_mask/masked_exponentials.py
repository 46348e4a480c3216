# correct: multiplies the exponentials by the mask before the sum
import math

import torch


def padding_mask(lengths, length):
    mask = torch.zeros(len(lengths), 1, length, dtype=torch.bool)
    for b, n in enumerate(lengths.tolist()):
        mask[b, :, :n] = True
    return mask


def attention(q, k, v, mask):
    scores = q @ k.transpose(-2, -1) / math.sqrt(q.shape[-1])
    e = torch.exp(scores - scores.amax(-1, keepdim=True)) * mask
    weights = e / e.sum(-1, keepdim=True)
    return weights @ v, weights
