# mistake: the mean is taken of the projected context instead of the context
import torch


def additive_attention(hidden, context, w_q, w_k, v, mask):
    keys = context @ w_k
    s = torch.tanh((hidden @ w_q)[:, :, None] + keys[:, None]) @ v
    weights = torch.where(mask[:, None], s, -torch.inf).softmax(-1)
    return weights @ keys, weights
