# mistake: dropout acts on the scores, before softmax; the weights returned are those of the full scores
import math


def attention(q, k, v, dropout=None):
    scores = q @ k.transpose(-2, -1) / math.sqrt(q.shape[-1])
    weights = scores.softmax(dim=-1)
    used = weights
    if dropout is not None:
        used = dropout(scores).softmax(dim=-1)
    return used @ v, weights
