"""Self-attention before and after its tokens are shuffled."""

import math

import torch
from torch import Tensor


def measure() -> dict[str, float]:
    """The largest difference in any output, for a random layer f and a random shuffling P."""
    L, C = 10, 16
    w_q, w_k, w_v = torch.randn(3, C, C, dtype=torch.float64) / math.sqrt(C)

    def f(x: Tensor) -> Tensor:
        scores = (x @ w_q) @ (x @ w_k).T / math.sqrt(C)  # (L, C) × (C, L) → (L, L)
        return scores.softmax(dim=-1) @ (x @ w_v)

    x, p = torch.randn(2, L, C, dtype=torch.float64)
    order = torch.randperm(L)
    return {
        "max |f(Px) − P f(x)|": (f(x[order]) - f(x)[order]).abs().max().item(),
        "max |f(Px) − f(x)|": (f(x[order]) - f(x)).abs().max().item(),
        "max |f(Px + p) − P f(x + p)|": (f(x[order] + p) - f(x + p)[order]).abs().max().item(),
    }


answer = "b"
