# mistake: -1e9 is filled in, so a fully masked row attends uniformly instead of to nothing
import math


def masked_attention(q, k, v, mask):
    scores = q @ k.transpose(-2, -1) / math.sqrt(q.shape[-1])
    weights = scores.masked_fill(~mask, -1e9).softmax(dim=-1)
    return weights @ v, weights
