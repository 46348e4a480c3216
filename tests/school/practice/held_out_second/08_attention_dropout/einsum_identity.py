# correct: einsum, with nn.Identity in the place of a missing dropout
import torch
from torch import nn


def attention(q, k, v, dropout=None):
    drop = nn.Identity() if dropout is None else dropout
    logits = torch.einsum("...ld,...sd->...ls", q, k).div(q.shape[-1] ** 0.5)
    weights = torch.softmax(logits, -1)
    return torch.einsum("...ls,...se->...le", drop(weights), v), weights
