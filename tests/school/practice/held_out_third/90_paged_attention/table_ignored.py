# mistake: find_slot returns the number of the block in the text, not in the pool
import math

import torch


def find_slot(table, position, block_size):
    return position // block_size, position % block_size


def paged_attention(q, k_pool, v_pool, table, length):
    k = k_pool[table].transpose(0, 1).flatten(1, 2)[:, :length]
    v = v_pool[table].transpose(0, 1).flatten(1, 2)[:, :length]
    w = ((k @ q[..., None])[..., 0] / math.sqrt(q.shape[-1])).softmax(-1)
    return (w[:, None] @ v)[:, 0]
