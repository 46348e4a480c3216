# mistake: puts a causal mask in although none is asked for
import torch
def attention(q, k, v):
    s = q @ k.mT / q.shape[-1] ** 0.5
    m = torch.ones(s.shape[-2:], dtype=torch.bool).tril()
    return s.masked_fill(~m, float("-inf")).softmax(-1) @ v
