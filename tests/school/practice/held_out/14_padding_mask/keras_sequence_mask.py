# mistake: two at once: the mask is (B, length) without the middle dimension, and 1e-9 is added where −1e9 is meant.
import math

import torch


def padding_mask(lengths, length):
    positions = torch.arange(length).unsqueeze(0)
    return positions < lengths.unsqueeze(1)


def attention(q, k, v, mask):
    logits = torch.matmul(q, k.transpose(-2, -1)) / math.sqrt(k.shape[-1])
    logits += (~mask) * 1e-9
    weights = torch.softmax(logits, dim=-1)
    return torch.matmul(weights, v), weights
