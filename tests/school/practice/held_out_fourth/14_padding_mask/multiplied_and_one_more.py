# mistake: two at once: the mask is True at one padding token too many, and the weights are multiplied by it after softmax
import math

import torch


def padding_mask(lengths, length):
    idx = torch.arange(length, device=lengths.device)[None, None, :]
    return idx <= lengths[:, None, None]


def attention(q, k, v, mask):
    weights = torch.softmax(q @ k.transpose(1, 2) / math.sqrt(q.shape[2]), dim=2)
    weights = weights * mask
    return weights @ v, weights
