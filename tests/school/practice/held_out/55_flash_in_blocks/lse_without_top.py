# mistake: returns log(total) as lse, without adding the largest score back.
import math

import torch


def flash_attention(q, k, v, block):
    top = q.new_full((*q.shape[:-1], 1), -math.inf)
    total = q.new_zeros((*q.shape[:-1], 1))
    out = 0.0
    for keys, values in zip(k.split(block, dim=-2), v.split(block, dim=-2)):
        scores = q @ keys.mT / math.sqrt(q.shape[-1])
        new = torch.maximum(top, scores.amax(-1, keepdim=True))
        factor = torch.exp(top - new)
        weights = torch.exp(scores - new)
        total = total * factor + weights.sum(-1, keepdim=True)
        out = out * factor + weights @ values
        top = new
    return out / total, total.log().squeeze(-1)
