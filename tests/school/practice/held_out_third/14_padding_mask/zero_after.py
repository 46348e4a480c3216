# mistake: the masked weights are set to 0 after softmax and not renormalised
import math

import torch


def padding_mask(lengths, length):
    return (torch.arange(length)[None, :] < lengths[:, None]).unsqueeze(1)


def attention(q, k, v, mask):
    weights = (q @ k.transpose(-2, -1) / math.sqrt(q.shape[-1])).softmax(dim=-1)
    weights = weights * mask
    return weights @ v, weights
