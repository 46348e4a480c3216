# correct: exponentials by hand, with a denominator that is never zero
import torch


def masked_attention(q, k, v, mask):
    scores = (q @ k.transpose(-1, -2)) * q.shape[-1] ** -0.5
    lowest = torch.finfo(scores.dtype).min
    top = scores.masked_fill(~mask, lowest).amax(-1, keepdim=True).detach()
    e = torch.where(mask, scores - top, torch.zeros_like(scores)).exp() * mask
    total = e.sum(-1, keepdim=True)
    weights = e / torch.where(total > 0, total, torch.ones_like(total))
    return weights @ v, weights
