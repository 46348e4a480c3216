# correct: a pooling matrix times the weights by head
import torch


def pool_heads(weight, n_heads, n_kv_heads):
    group = n_heads // n_kv_heads
    pool = torch.eye(n_kv_heads, dtype=weight.dtype).repeat_interleave(group, dim=1) / group
    heads = weight.unflatten(0, (n_heads, -1))
    return torch.einsum("kh,hdc->kdc", pool, heads).reshape(-1, weight.shape[1])
