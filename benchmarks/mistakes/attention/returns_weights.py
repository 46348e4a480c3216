# mistake: returns out and the weights
def attention(q, k, v):
    w = (q @ k.mT / q.shape[-1] ** 0.5).softmax(-1)
    return w @ v, w
