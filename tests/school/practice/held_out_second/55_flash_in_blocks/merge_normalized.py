# correct: keeps a normalized output and the lse, and merges each block with logaddexp
import math

import torch


def flash_attention(q, k, v, block):
    scale = 1 / math.sqrt(q.shape[-1])
    out = lse = None
    for start in range(0, k.shape[-2], block):
        part = slice(start, start + block)
        scores = (q @ k[..., part, :].mT) * scale
        top = scores.amax(-1, keepdim=True)
        e = torch.exp(scores - top)
        total = e.sum(-1, keepdim=True)
        here, here_lse = e @ v[..., part, :] / total, top + total.log()
        if out is None:
            out, lse = here, here_lse
        else:
            both = torch.logaddexp(lse, here_lse)
            out = torch.exp(lse - both) * out + torch.exp(here_lse - both) * here
            lse = both
    return out, lse.squeeze(-1)
