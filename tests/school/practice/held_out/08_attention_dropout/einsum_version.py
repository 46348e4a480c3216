# correct: einsum, with a clone that goes through dropout
import torch


def attention(q, k, v, dropout=None):
    scores = torch.einsum("...id,...jd->...ij", q, k).div(q.size(-1) ** 0.5)
    weights = torch.softmax(scores, -1)
    dropped = weights.clone()
    if dropout is not None:
        dropped = dropout(dropped)
    return torch.einsum("...ij,...je->...ie", dropped, v), weights
