# mistake: applies dropout to the scores before softmax instead of to the weights
import math


def attention(q, k, v, dropout=None):
    scores = q @ k.transpose(-2, -1) / math.sqrt(q.shape[-1])
    if dropout is not None:
        scores = dropout(scores)
    weights = scores.softmax(dim=-1)
    return weights @ v, weights
