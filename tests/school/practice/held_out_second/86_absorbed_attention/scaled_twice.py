# mistake: divides by √D in absorb and again in the scores, so that the absorbed queries no longer give the dot product
import math

import torch


def absorb(q, w_uk):
    return q @ w_uk / math.sqrt(q.shape[-1])


def latent_attention(q, c, w_uk, w_uv):
    c = c.unsqueeze(1)
    scores = absorb(q, w_uk) @ c.mT / math.sqrt(q.shape[-1])
    return scores.softmax(dim=-1) @ c @ w_uv.mT
