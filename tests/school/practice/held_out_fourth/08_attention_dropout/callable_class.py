# correct: a class with __call__, and nn.Identity where no dropout is given
import torch
from torch import nn


class _Attention:
    def __init__(self, dropout):
        self.dropout = nn.Identity() if dropout is None else dropout

    def __call__(self, q, k, v):
        scores = torch.einsum("...ld,...sd->...ls", q, k).div(q.size(-1) ** 0.5)
        weights = scores.softmax(dim=-1)
        return torch.einsum("...ls,...se->...le", self.dropout(weights), v), weights


def attention(q, k, v, dropout=None):
    return _Attention(dropout)(q, k, v)
