# correct: nn.Identity takes the place of a missing dropout; einsum for both products
import torch
from torch import nn


def attention(q, k, v, dropout=None):
    dropout = nn.Identity() if dropout is None else dropout
    scores = torch.einsum("...ld,...sd->...ls", q, k) * q.shape[-1] ** -0.5
    weights = torch.softmax(scores, dim=-1)
    return torch.einsum("...ls,...se->...le", dropout(weights), v), weights
