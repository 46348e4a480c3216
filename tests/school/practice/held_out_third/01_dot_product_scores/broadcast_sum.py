# correct: products by broadcasting, then a sum over the last dimension
def scores(q, k):
    pairs = q[..., :, None, :] * k[..., None, :, :]
    return pairs.sum(-1)
