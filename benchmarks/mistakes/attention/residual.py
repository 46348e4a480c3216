# mistake: adds the mean of the values to the result
def attention(q, k, v):
    out = (q @ k.mT / q.shape[-1] ** 0.5).softmax(-1) @ v
    return out + v.mean(-2, keepdim=True)
