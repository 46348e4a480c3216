# mistake: divides by D
def grouped_attention(q, k, v):
    n = q.shape[1] // k.shape[1]
    k, v = k.repeat_interleave(n, 1), v.repeat_interleave(n, 1)
    return (q @ k.mT / q.shape[-1]).softmax(-1) @ v
