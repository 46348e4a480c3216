# mistake: the scores are divided by the root of D
import math

import torch


def additive_attention(hidden, context, w_q, w_k, v, mask):
    s = torch.tanh((hidden @ w_q)[:, :, None] + (context @ w_k)[:, None]) @ v
    s = s / math.sqrt(v.shape[0])
    weights = s.masked_fill(~mask[:, None], -math.inf).softmax(-1)
    return weights @ context, weights
