"""What an induction head attends to: the places after earlier occurrences of the present token."""

import torch
from torch import Tensor


def induction_mask(tokens: Tensor) -> Tensor:
    """Where an induction head attends: (L,) → (L, L), True at (i, j) if it should"""
    same = tokens[:, None] == tokens[None, :]  # (L, L): is token j the token i?
    after = torch.zeros_like(same)
    after[:, 1:] = same[:, :-1]  # j follows an occurrence at j − 1
    return after & torch.ones_like(same).tril()  # j ≤ i: the occurrence lies before i
