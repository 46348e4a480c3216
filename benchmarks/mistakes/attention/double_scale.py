# mistake: scales the queries and then the scores again
def attention(q, k, v):
    scale = q.shape[-1] ** -0.5
    q = q * scale
    s = q @ k.transpose(-2, -1)
    w = (s * scale).softmax(-1)
    return w @ v
