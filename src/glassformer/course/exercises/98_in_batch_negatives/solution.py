"""From tokens to one vector for each text, and the loss that pulls pairs together."""

import torch
import torch.nn.functional as F
from torch import Tensor


def mean_pool(hidden: Tensor, mask: Tensor) -> Tensor:
    """The mean of the real tokens' vectors: (B, L, C), (B, L) → (B, C)"""
    kept = hidden.masked_fill(~mask[..., None], 0.0)
    return kept.sum(dim=1) / mask.sum(dim=1, keepdim=True)


def info_nce(queries: Tensor, documents: Tensor, temperature: float) -> Tensor:
    """In-batch negatives: (B, C), (N, C) with N ≥ B → a number"""
    one, other = F.normalize(queries, dim=-1), F.normalize(documents, dim=-1)
    scores = one @ other.T / temperature  # (B, N)
    return F.cross_entropy(scores, torch.arange(len(queries)))
