# correct: keeps a normalized output and the lse, and mixes each block in with logaddexp
import math

import torch


def flash_attention(q, k, v, block):
    out, lse = None, None
    for start in range(0, k.size(-2), block):
        keys, values = k[..., start : start + block, :], v[..., start : start + block, :]
        scores = (q @ keys.transpose(-1, -2)).div(math.sqrt(q.size(-1)))
        top = scores.amax(-1, keepdim=True)
        e = (scores - top).exp()
        block_lse = top.squeeze(-1) + e.sum(-1).log()
        block_out = e @ values / e.sum(-1, keepdim=True)
        if out is None:
            out, lse = block_out, block_lse
            continue
        new = torch.logaddexp(lse, block_lse)
        out = out * (lse - new).exp()[..., None] + block_out * (block_lse - new).exp()[..., None]
        lse = new
    return out, lse
