# mistake: scale missing
def masked_attention(q, k, v, mask):
    s = q @ k.mT
    w = s.masked_fill(~mask, float("-inf")).softmax(-1).masked_fill(~mask, 0)
    return w @ v, w
