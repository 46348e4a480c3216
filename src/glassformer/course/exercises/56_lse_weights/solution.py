"""One entry of the attention matrix, without the matrix."""

import math

from torch import Tensor


def weight(q: Tensor, k: Tensor, lse: Tensor, b: int, h: int, i: int, j: int) -> Tensor:
    """exp(q_i · k_j / √D − lse_i)"""
    score = q[b, h, i] @ k[b, h, j] / math.sqrt(q.shape[-1])  # (D,) × (D,) → one number
    return (score - lse[b, h, i]).exp()  # subtract before exp: never more than exp(0)
