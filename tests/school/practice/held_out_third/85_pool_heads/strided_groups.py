# mistake: the groups are heads h, h + K, h + 2K instead of neighbours
import torch


def pool_heads(weight, n_heads, n_kv_heads):
    D = weight.shape[0] // n_heads
    return weight.reshape(n_heads // n_kv_heads, n_kv_heads, D, -1).mean(0).flatten(0, 1)
