# mistake: divides by the length of the keys' root and drops correctly
def attention(q, k, v, dropout=None):
    w = (q @ k.transpose(-2, -1) / k.shape[-2] ** 0.5).softmax(-1)
    return (w if dropout is None else dropout(w)) @ v, w
