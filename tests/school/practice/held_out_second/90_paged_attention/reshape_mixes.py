# mistake: reshapes (n, H, T, D) to (H, n · T, D) without moving the heads to the front, which mixes heads and blocks
import math

import torch


def find_slot(table, position, block_size):
    return int(table[position // block_size]), position % block_size


def paged_attention(q, k_pool, v_pool, table, length):
    H, D = q.shape
    k = k_pool[table].reshape(H, -1, D)[:, :length]
    v = v_pool[table].reshape(H, -1, D)[:, :length]
    weights = (torch.einsum("hd,hsd->hs", q, k) / math.sqrt(D)).softmax(-1)
    return torch.einsum("hs,hsd->hd", weights, v)
