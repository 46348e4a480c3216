# mistake: computes the whole L × S matrix first and only then splits it into blocks.
import math

import torch


def flash_attention(q, k, v, block):
    scores = q @ k.transpose(-2, -1) / math.sqrt(q.shape[-1])
    top = torch.full(q.shape[:-1], -math.inf)
    total = torch.zeros(q.shape[:-1])
    out = torch.zeros(*q.shape[:-1], v.shape[-1])
    for s, values in zip(scores.split(block, dim=-1), v.split(block, dim=-2)):
        new = torch.maximum(top, s.amax(-1))
        factor = torch.exp(top - new)
        weights = torch.exp(s - new[..., None])
        total = total * factor + weights.sum(-1)
        out = out * factor[..., None] + weights @ values
        top = new
    return out / total[..., None], top + torch.log(total)
