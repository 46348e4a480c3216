"""Several heads at once, with arrays."""

import numpy as np


def multi_head_attention(Q: np.ndarray, K: np.ndarray, V: np.ndarray, n_heads: int) -> np.ndarray:
    """head_h = softmax(Q_h K_hᵀ / √D) V_h        out = [head_1 … head_H]"""
    L, C = Q.shape
    D = C // n_heads

    def split(x: np.ndarray) -> np.ndarray:
        return x.reshape(L, n_heads, D).transpose(1, 0, 2)  # (L, C) → (H, L, D)

    q, k, v = split(Q), split(K), split(V)
    scores = q @ k.transpose(0, 2, 1) / np.sqrt(D)  # (H, L, D) × (H, D, L) → (H, L, L)
    exps = np.exp(scores - scores.max(axis=-1, keepdims=True))
    weights = exps / exps.sum(axis=-1, keepdims=True)
    out = weights @ v  # (H, L, L) × (H, L, D) → (H, L, D)
    return out.transpose(1, 0, 2).reshape(L, C)  # the same two steps, undone
