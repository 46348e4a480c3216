"""Repetition penalty: tokens that have occurred become less likely, whatever the sign of logits."""

import torch
from torch import Tensor


def penalize(logits: Tensor, seen: Tensor, penalty: float) -> Tensor:
    """Make tokens that have occurred less likely: (B, V), (B, L) → (B, V)"""
    scores = logits.gather(1, seen)  # (B, L): the logits of what has occurred
    scores = torch.where(scores < 0, scores * penalty, scores / penalty)
    return logits.scatter(1, seen, scores)
