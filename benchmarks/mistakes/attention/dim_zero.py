# mistake: softmax over the batch
def attention(q, k, v):
    s = q @ k.mT / q.shape[-1] ** 0.5
    return s.softmax(0) @ v
