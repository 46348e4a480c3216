"""The tokens whose embeddings point in the direction of a given one."""

import torch
from torch import Tensor


def nearest(weight: Tensor, token: int, k: int) -> tuple[Tensor, Tensor]:
    """The k tokens most similar to one: (V, C), t, k → cosines (k,), tokens (k,)"""
    centred = weight - weight.mean(dim=0)
    directions = centred / centred.norm(dim=-1, keepdim=True)
    cosines = directions @ directions[token]  # (V, C) × (C,) → (V,)
    cosines[token] = -torch.inf  # nothing is nearer to a token than itself
    found = cosines.topk(k)
    return found.values, found.indices
