# mistake: removes NaN from the output alone, so the weights of an empty row stay NaN.
import math


def masked_attention(q, k, v, mask):
    scores = q @ k.transpose(-2, -1) / math.sqrt(q.shape[-1])
    weights = scores.masked_fill(~mask, -math.inf).softmax(dim=-1)
    out = (weights @ v).nan_to_num(0.0)
    return out, weights
