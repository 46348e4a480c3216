# mistake: D ** 1 / 2 is D / 2, because the exponent binds more tightly than the slash.
def scaled_scores(q, k):
    D = q.shape[-1]
    scale = D ** 1 / 2
    return q @ k.transpose(-2, -1) / scale
