# mistake: two at once: the projections are multiplied instead of added, and the mask is ignored
import torch


def additive_attention(hidden, context, w_q, w_k, v, mask):
    s = torch.tanh((hidden @ w_q)[:, :, None] * (context @ w_k)[:, None]) @ v
    weights = s.softmax(dim=-1)
    return weights @ context, weights
