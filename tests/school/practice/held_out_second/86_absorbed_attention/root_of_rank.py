# mistake: divides by √R, the width of the latents, instead of √D
import math

import torch


def absorb(q, w_uk):
    return q @ w_uk


def latent_attention(q, c, w_uk, w_uv):
    a = absorb(q, w_uk)
    latents = c[:, None]
    scores = a @ latents.transpose(-2, -1) / math.sqrt(a.shape[-1])
    return scores.softmax(-1) @ latents @ w_uv.transpose(-2, -1)
