# mistake: the sum of weights is rescaled, the sum of values is not
import math

import torch


def flash_attention(q, k, v, block):
    top = torch.full(q.shape[:-1], -math.inf, dtype=q.dtype)
    total = torch.zeros(q.shape[:-1], dtype=q.dtype)
    out = 0
    for keys, values in zip(k.split(block, dim=-2), v.split(block, dim=-2)):
        s = q @ keys.transpose(-2, -1) / math.sqrt(q.shape[-1])
        new = torch.maximum(top, s.amax(-1))
        w = (s - new[..., None]).exp()
        total = total * (top - new).exp() + w.sum(-1)
        out = out + w @ values
        top = new
    return out / total[..., None], top + total.log()
