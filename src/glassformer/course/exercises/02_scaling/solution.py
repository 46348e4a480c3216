"""Scores whose size does not depend on the width."""

import math

from torch import Tensor


def scaled_scores(q: Tensor, k: Tensor) -> Tensor:
    """scores = q kᵀ / √D"""
    D = q.shape[-1]
    # The sum of D independent terms of variance 1 has variance D (Vaswani et al. 2017, §3.2.1).
    return q @ k.transpose(-2, -1) / math.sqrt(D)  # (..., L, D) × (..., D, S) → (..., L, S)
