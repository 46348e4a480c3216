# correct: chunks the rows into heads, and averages lists of neighbours
import torch


def pool_heads(weight, n_heads, n_kv_heads):
    heads = weight.chunk(n_heads, dim=0)
    size = n_heads // n_kv_heads
    pooled = []
    for start in range(0, n_heads, size):
        pooled.append(sum(heads[start : start + size]) / size)
    return torch.cat(pooled)
