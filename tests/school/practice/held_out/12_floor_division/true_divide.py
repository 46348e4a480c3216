# correct: torch.true_divide by a power of one half
import torch


def attention(q, k, v):
    D = q.shape[-1]
    scores = torch.true_divide(q @ k.transpose(-2, -1), D**0.5)
    weights = scores.softmax(dim=-1)
    out = weights @ v
    return out, weights
