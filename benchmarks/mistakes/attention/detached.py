# mistake: the weights are detached, no gradient reaches q and k
def attention(q, k, v):
    w = (q @ k.mT / q.shape[-1] ** 0.5).softmax(-1).detach()
    return w @ v
