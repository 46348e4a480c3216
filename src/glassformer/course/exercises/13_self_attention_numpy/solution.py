"""Self-attention with arrays."""

import numpy as np


def self_attention(Q: np.ndarray, K: np.ndarray, V: np.ndarray) -> np.ndarray:
    """softmax(Q Kᵀ / √D) V"""
    scores = Q @ K.T / np.sqrt(Q.shape[-1])  # (L, D) × (D, L) → (L, L)
    exps = np.exp(scores - scores.max(axis=-1, keepdims=True))
    weights = exps / exps.sum(axis=-1, keepdims=True)
    return weights @ V  # (L, L) × (L, E) → (L, E)
