# mistake: the first head of each group is taken instead of the mean
import torch


def pool_heads(weight, n_heads, n_kv_heads):
    D = weight.shape[0] // n_heads
    w = weight.view(n_kv_heads, n_heads // n_kv_heads, D, -1)
    return w[:, 0].reshape(n_kv_heads * D, -1)
