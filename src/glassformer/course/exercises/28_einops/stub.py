import math

from einops import einsum, rearrange


def multi_head(q, k, v, n_heads):
    """head_h = softmax(q_h k_hᵀ / √D) v_h        out = [head_1 … head_H]"""
    ...
