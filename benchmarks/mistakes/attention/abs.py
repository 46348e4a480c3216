# mistake: absolute scores
def attention(q, k, v):
    s = (q @ k.mT).abs() / q.shape[-1] ** 0.5
    return s.softmax(-1) @ v
