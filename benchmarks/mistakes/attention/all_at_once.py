# mistake: softmax over all cells of the matrix together
def attention(q, k, v):
    s = q @ k.mT / q.shape[-1] ** 0.5
    w = s.flatten(-2).softmax(-1).view(s.shape)
    return w @ v
