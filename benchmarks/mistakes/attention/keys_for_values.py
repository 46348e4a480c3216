# mistake: compares the keys with themselves instead of with the queries
def attention(q, k, v):
    d = q.shape[-1]
    w = (k @ k.transpose(-2, -1) / d ** 0.5).softmax(-1)
    return (w @ v)
