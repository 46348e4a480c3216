# mistake: two at once: adds the heads up instead of averaging; and makes groups of n_kv_heads heads, so that H / K of them are left
import torch


def pool_heads(weight, n_heads, n_kv_heads):
    D = weight.shape[0] // n_heads
    heads = weight.reshape(-1, n_kv_heads, D, weight.shape[1])
    return heads.sum(dim=1).flatten(0, 1)
