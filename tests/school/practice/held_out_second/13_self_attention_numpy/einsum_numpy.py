# correct: np.einsum with the maximum subtracted by np.maximum.reduce
import numpy as np


def self_attention(Q, K, V):
    logits = np.einsum("id,jd->ij", Q, K) * (1.0 / np.sqrt(K.shape[1]))
    top = np.maximum.reduce(logits, axis=1)
    numerator = np.exp(logits - top[:, np.newaxis])
    return np.einsum("ij,je->ie", numerator, V) / numerator.sum(1)[:, None]
