# correct: exp by hand, with a sum that is replaced by 1 where it is 0
import math

import torch


def masked_attention(q, k, v, mask):
    scores = q @ k.mT / math.sqrt(q.shape[-1])
    mask = mask.expand(scores.shape)
    lowered = torch.where(mask, scores, torch.full_like(scores, -1e30))
    exps = torch.where(mask, (lowered - lowered.amax(-1, keepdim=True)).exp(), 0.0)
    total = exps.sum(-1, keepdim=True)
    weights = exps / torch.where(total == 0, torch.ones_like(total), total)
    return weights @ v, weights
