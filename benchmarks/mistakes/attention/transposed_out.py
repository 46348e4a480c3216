# mistake: returns the result transposed
def attention(q, k, v):
    s = q @ k.mT / q.shape[-1] ** 0.5
    return (s.softmax(-1) @ v).transpose(-2, -1)
