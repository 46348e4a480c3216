# mistake: +∞ instead of −∞
import torch
def causal_bias(length):
    b = torch.zeros(length, length)
    m = torch.ones(length, length, dtype=torch.bool).triu(1)
    return b.masked_fill(m, float("inf"))
def causal_weights(scores):
    return (scores + causal_bias(scores.shape[-1]).to(scores.dtype)).softmax(-1)
