import numpy as np


def multi_head_attention(Q, K, V, n_heads):
    """head_h = softmax(Q_h K_hᵀ / √D) V_h        out = [head_1 … head_H]"""
    ...
