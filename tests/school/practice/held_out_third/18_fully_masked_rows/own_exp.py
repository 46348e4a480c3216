# correct: exp by hand; the sum is at least a tiny number where nothing is allowed
import math

import torch


def masked_attention(q, k, v, mask):
    scores = q @ k.transpose(-2, -1) / math.sqrt(q.shape[-1])
    hidden = torch.logical_not(mask).expand(scores.shape)
    low = torch.finfo(scores.dtype).min
    top = scores.masked_fill(hidden, low).amax(-1, keepdim=True).detach()
    exps = torch.where(hidden, torch.zeros_like(scores), (scores.masked_fill(hidden, 0.0) - top.clamp(min=-1e30)).clamp(max=0).exp())
    total = exps.sum(-1, keepdim=True)
    weights = exps / torch.where(total > 0, total, torch.ones_like(total))
    return weights @ v, weights
