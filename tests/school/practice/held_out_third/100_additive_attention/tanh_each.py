# mistake: tanh is applied to each projection before the sum
import torch


def additive_attention(hidden, context, w_q, w_k, v, mask):
    a = torch.tanh(hidden @ w_q).unsqueeze(2)
    b = torch.tanh(context @ w_k).unsqueeze(1)
    s = (a + b) @ v
    s = s.masked_fill(~mask.unsqueeze(1), float("-inf"))
    weights = s.softmax(dim=2)
    return weights @ context, weights
