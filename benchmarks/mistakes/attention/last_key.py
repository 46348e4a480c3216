# mistake: the last key is left out
def attention(q, k, v):
    k, v = k[..., :-1, :], v[..., :-1, :]
    return (q @ k.mT / q.shape[-1] ** 0.5).softmax(-1) @ v
