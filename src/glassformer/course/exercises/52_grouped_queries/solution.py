"""Several query heads share one key-value head."""

import math

from torch import Tensor


def grouped_attention(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    """out[h] = softmax(q[h] k[g]ᵀ / √D) v[g],  g = h // (H // K)"""
    n = q.shape[1] // k.shape[1]  # query heads per key-value head
    k = k.repeat_interleave(n, dim=1)  # (B, K, S, D) → (B, H, S, D): copies side by side
    v = v.repeat_interleave(n, dim=1)
    scores = q @ k.transpose(-2, -1) / math.sqrt(q.shape[-1])  # (B, H, L, S)
    return scores.softmax(dim=-1) @ v
