# correct: einsum on (L, H, D) without any transpose
import numpy as np


def multi_head_attention(Q, K, V, n_heads):
    length, width = Q.shape
    shape = (length, n_heads, width // n_heads)
    scores = np.einsum("ihd,jhd->hij", Q.reshape(shape), K.reshape(shape))
    scores = scores / (width / n_heads) ** 0.5
    scores = np.exp(scores - np.max(scores, axis=-1, keepdims=True))
    scores = scores / np.sum(scores, axis=-1, keepdims=True)
    return np.einsum("hij,jhd->ihd", scores, V.reshape(shape)).reshape(length, width)
