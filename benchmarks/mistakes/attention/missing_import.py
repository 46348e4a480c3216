# mistake: math is not imported
def attention(q, k, v):
    s = q @ k.mT / math.sqrt(q.shape[-1])
    return s.softmax(-1) @ v
