# mistake: reads the mask the wrong way round, in both fills.
import math


def masked_attention(q, k, v, mask):
    scores = q @ k.transpose(-2, -1) / math.sqrt(q.shape[-1])
    weights = scores.masked_fill(mask, -math.inf).softmax(dim=-1)
    weights = weights.masked_fill(mask, 0.0)
    return weights @ v, weights
