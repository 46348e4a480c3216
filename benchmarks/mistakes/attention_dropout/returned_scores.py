# mistake: returns the scores, not the weights
def attention(q, k, v, dropout=None):
    s = q @ k.transpose(-2, -1) / q.shape[-1] ** 0.5
    w = s.softmax(-1)
    if dropout is not None:
        w2 = dropout(w)
    else:
        w2 = w
    return w2 @ v, s
