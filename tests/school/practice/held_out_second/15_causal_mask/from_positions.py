# correct: compares positions instead of tril, with torch.where on the scores
import torch


def causal_mask(n_queries, n_keys):
    asks = torch.arange(n_keys - n_queries, n_keys).unsqueeze(1)
    return torch.arange(n_keys) <= asks


def causal_attention(q, k, v):
    s = torch.matmul(q, k.transpose(-1, -2)).div(q.shape[-1] ** 0.5)
    visible = causal_mask(q.shape[-2], k.shape[-2])
    return torch.where(visible, s, s.new_tensor(-torch.inf)).softmax(-1) @ v
