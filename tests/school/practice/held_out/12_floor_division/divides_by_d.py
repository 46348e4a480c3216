# mistake: repairs the slash but drops the square root on the way.
def attention(q, k, v):
    """out = softmax(q kᵀ / √D) v; returns (out, weights)"""
    D = q.shape[-1]
    scores = q @ k.transpose(-2, -1) / D  # (..., L, D) → (..., L, S)
    weights = scores.softmax(dim=-1)
    out = weights @ v
    return out, weights
