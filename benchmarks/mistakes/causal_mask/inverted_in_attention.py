# mistake: the mask is right, masked_fill hides what is allowed
import torch
def causal_mask(n_queries, n_keys):
    return torch.ones(n_queries, n_keys, dtype=torch.bool).tril(n_keys - n_queries)
def causal_attention(q, k, v):
    s = q @ k.mT / q.shape[-1] ** 0.5
    m = causal_mask(q.shape[-2], k.shape[-2])
    return s.masked_fill(m, float("-inf")).softmax(-1) @ v
