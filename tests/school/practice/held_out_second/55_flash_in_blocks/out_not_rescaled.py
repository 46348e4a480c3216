# mistake: rescales the sum of weights when the largest score changes, but not the sum of values
import math

import torch


def flash_attention(q, k, v, block):
    top = torch.full(q.shape[:-1], -math.inf)
    total = torch.zeros(q.shape[:-1])
    out = torch.zeros(*q.shape[:-1], v.shape[-1])
    for keys, values in zip(k.split(block, dim=-2), v.split(block, dim=-2)):
        scores = q @ keys.transpose(-2, -1) / math.sqrt(q.shape[-1])
        new = torch.maximum(top, scores.amax(-1))
        weights = torch.exp(scores - new[..., None])
        total = total * torch.exp(top - new) + weights.sum(-1)
        out = out + weights @ values
        top = new
    return out / total[..., None], top + total.log()
