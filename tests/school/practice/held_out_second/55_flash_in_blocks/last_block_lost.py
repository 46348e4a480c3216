# mistake: takes S // block whole blocks and loses the keys that are left over
import math

import torch


def flash_attention(q, k, v, block):
    top = torch.full(q.shape[:-1], -math.inf)
    total = torch.zeros(q.shape[:-1])
    out = torch.zeros(*q.shape[:-1], v.shape[-1])
    for n in range(k.shape[-2] // block):
        keys = k[..., n * block : (n + 1) * block, :]
        values = v[..., n * block : (n + 1) * block, :]
        scores = q @ keys.transpose(-2, -1) / math.sqrt(q.shape[-1])
        new = torch.maximum(top, scores.amax(-1))
        factor = torch.exp(top - new)
        weights = torch.exp(scores - new[..., None])
        total = total * factor + weights.sum(-1)
        out = out * factor[..., None] + weights @ values
        top = new
    return out / total[..., None], top + total.log()
