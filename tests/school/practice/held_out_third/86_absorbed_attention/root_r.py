# mistake: the scores are divided by the root of R
import math

import torch


def absorb(q, w_uk):
    return q @ w_uk


def latent_attention(q, c, w_uk, w_uv):
    a = absorb(q, w_uk)
    w = (a @ c[:, None].transpose(-2, -1) / math.sqrt(c.shape[-1])).softmax(-1)
    return w @ c[:, None] @ w_uv.transpose(-2, -1)
