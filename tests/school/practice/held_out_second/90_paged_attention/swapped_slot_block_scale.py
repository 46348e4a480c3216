# mistake: two at once: find_slot returns place and block in the wrong order; and the scores are divided by the root of the block size
import math

import torch


def find_slot(table, position, block_size):
    return position % block_size, int(table[position // block_size])


def paged_attention(q, k_pool, v_pool, table, length):
    N, H, T, D = k_pool.shape
    k = k_pool[table].transpose(0, 1).flatten(1, 2)[:, :length]
    v = v_pool[table].transpose(0, 1).flatten(1, 2)[:, :length]
    weights = (torch.einsum("hd,hsd->hs", q, k) / math.sqrt(T)).softmax(-1)
    return torch.einsum("hs,hsd->hd", weights, v)
