# mistake: lse is the log of the total alone, the largest score is not added
import math

import torch


def flash_attention(q, k, v, block):
    top = torch.full(q.shape[:-1], -math.inf, dtype=q.dtype)
    total = torch.zeros(q.shape[:-1], dtype=q.dtype)
    out = torch.zeros(q.shape[:-1] + v.shape[-1:], dtype=v.dtype)
    for start in range(0, k.shape[-2], block):
        keys, values = k[..., start : start + block, :], v[..., start : start + block, :]
        s = q @ keys.mT / math.sqrt(q.shape[-1])
        new = torch.maximum(top, s.amax(-1))
        f = torch.exp(top - new)
        w = torch.exp(s - new.unsqueeze(-1))
        total = total * f + w.sum(-1)
        out = out * f.unsqueeze(-1) + w @ values
        top = new
    return out / total.unsqueeze(-1), total.log()
