# mistake: two at once: no scale, and softmax over the queries
import torch


def absorb(q, w_uk):
    return q @ w_uk


def latent_attention(q, c, w_uk, w_uv):
    c = c.unsqueeze(1)
    w = torch.softmax(absorb(q, w_uk) @ c.transpose(-2, -1), dim=-2)
    return (w @ c) @ w_uv.transpose(-2, -1)
