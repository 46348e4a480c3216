# mistake: keys are not transposed
def attention(q, k, v):
    s = q @ k / q.shape[-1] ** 0.5
    return s.softmax(-1) @ v
