"""Min-p: a bar that moves with the model's certainty."""

import torch
from torch import Tensor


def min_p_probabilities(logits: Tensor, min_p: float, temperature: float = 1.0) -> Tensor:
    """Keep tokens at least min_p times as likely as the likeliest: (B, V) → (B, V)"""
    p = (logits / temperature).softmax(dim=-1)
    least = min_p * p.amax(dim=-1, keepdim=True)  # (B, 1): a bar for each row
    kept = torch.where(p < least, 0.0, p)
    return kept / kept.sum(dim=-1, keepdim=True)
