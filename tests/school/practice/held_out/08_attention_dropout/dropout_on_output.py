# mistake: applies dropout to the output instead of the weights.
import math


def attention(q, k, v, dropout=None):
    scores = q @ k.transpose(-2, -1) / math.sqrt(q.shape[-1])
    weights = scores.softmax(dim=-1)
    out = weights @ v
    if dropout is not None:
        out = dropout(out)
    return out, weights
