# mistake: groups heads that are K apart (0, K, 2K …) instead of neighbours
import torch


def pool_heads(weight, n_heads, n_kv_heads):
    D = weight.shape[0] // n_heads
    w = weight.reshape(n_heads // n_kv_heads, n_kv_heads, D, -1)
    return w.mean(dim=0).flatten(0, 1)
