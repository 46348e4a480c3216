# correct: lets rows without a key see everything during softmax and multiplies their weights by 0 afterwards
import torch


def masked_attention(q, k, v, mask):
    scores = q @ k.transpose(-2, -1) * q.shape[-1] ** -0.5
    mask = mask.expand_as(scores) if mask.dim() <= scores.dim() else mask
    some = mask.any(dim=-1, keepdim=True)
    weights = scores.masked_fill(~mask & some, -torch.inf).softmax(dim=-1)
    weights = weights * some.to(weights.dtype)
    return weights @ v, weights
