# mistake: multiplies the scores by the mask, so that hidden keys get the score 0 instead of −∞
import math

import torch


def padding_mask(lengths, length):
    return (torch.arange(length)[None] < lengths[:, None]).unsqueeze(1)


def attention(q, k, v, mask):
    scores = q @ k.transpose(-2, -1) / math.sqrt(q.shape[-1])
    weights = torch.softmax(scores * mask, dim=-1)
    return weights @ v, weights
