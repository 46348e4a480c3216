# mistake: dropout acts on the output instead of the weights
import math


def attention(q, k, v, dropout=None):
    weights = (q @ k.transpose(-2, -1) / math.sqrt(q.shape[-1])).softmax(dim=-1)
    out = weights @ v
    if dropout:
        out = dropout(out)
    return out, weights
