# mistake: splits the rows as (K, D, heads of the group), as if the heads were the inner dimension
import torch


def pool_heads(weight, n_heads, n_kv_heads):
    D = weight.shape[0] // n_heads
    w = weight.reshape(n_kv_heads, D, n_heads // n_kv_heads, -1)
    return w.mean(dim=2).flatten(0, 1)
