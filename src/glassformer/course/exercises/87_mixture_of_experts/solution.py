"""Each token is read by the k experts that its router ranks highest."""

import torch
from torch import Tensor


def mixture(x: Tensor, router: Tensor, up: Tensor, down: Tensor, k: int) -> Tensor:
    """The weighted sum of the k experts that each token chooses: (T, C) → (T, C)"""
    probabilities = (x @ router.T).softmax(dim=-1)  # (T, N)
    best, chosen = probabilities.topk(k, dim=-1)  # (T, k)
    weights = best / best.sum(dim=-1, keepdim=True)
    out = torch.zeros_like(x)
    for i in range(len(router)):
        rows, place = (chosen == i).nonzero(as_tuple=True)  # the tokens of expert i
        if len(rows):
            hidden = (x[rows] @ up[i].T).relu()  # (n, F)
            part = weights[rows, place, None] * (hidden @ down[i].T)  # (n, C)
            out = out.index_add(0, rows, part)
    return out
