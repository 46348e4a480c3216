# mistake: lets an empty row attend to every key, so that nothing is NaN.
import math


def masked_attention(q, k, v, mask):
    empty = ~mask.any(dim=-1, keepdim=True)
    mask = mask | empty
    scores = q @ k.transpose(-2, -1) / math.sqrt(q.shape[-1])
    weights = scores.masked_fill(~mask, -math.inf).softmax(dim=-1)
    return weights @ v, weights
