# correct: multiplies by an averaging matrix of heads with einsum
import torch


def pool_heads(weight, n_heads, n_kv_heads):
    group = n_heads // n_kv_heads
    average = torch.zeros(n_kv_heads, n_heads, dtype=weight.dtype)
    for head in range(n_heads):
        average[head // group, head] = 1 / group
    heads = weight.view(n_heads, -1, weight.shape[1])
    return torch.einsum("kh,hdc->kdc", average, heads).reshape(-1, weight.shape[1])
