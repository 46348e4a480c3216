"""What the decoder reads, what it should predict, and the loss."""

import torch.nn.functional as F
from torch import Tensor


def shift(tokens: Tensor) -> tuple[Tensor, Tensor]:
    """begin a b end → inputs (begin a b), targets (a b end)"""
    return tokens[:, :-1], tokens[:, 1:]  # (B, N) → (B, N − 1) twice


def loss(logits: Tensor, targets: Tensor, pad: int) -> Tensor:
    """The mean of −log p(target) over all targets that are not pad"""
    rows, answers = logits.flatten(0, 1), targets.flatten()  # (B, L, V) → (BL, V); (BL,)
    total = F.cross_entropy(rows, answers, ignore_index=pad, reduction="sum")
    return total / (targets != pad).sum()
