# mistake: reshapes w_uv from (H, E, R) to (H, R, E) instead of transposing it
import math

import torch


def absorb(q, w_uk):
    return torch.matmul(q, w_uk)


def latent_attention(q, c, w_uk, w_uv):
    H, E, R = w_uv.shape
    latents = c[:, None]
    scores = absorb(q, w_uk) @ latents.transpose(-2, -1) / math.sqrt(q.shape[-1])
    return scores.softmax(dim=-1) @ latents @ w_uv.reshape(H, R, E)
