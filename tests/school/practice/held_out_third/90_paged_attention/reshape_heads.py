# mistake: reshaped without moving the heads first, so heads and tokens mix
import math

import torch


def find_slot(table, position, block_size):
    return table[position // block_size].item(), position % block_size


def paged_attention(q, k_pool, v_pool, table, length):
    H, D = q.shape
    k = k_pool[table].reshape(H, -1, D)[:, :length]
    v = v_pool[table].reshape(H, -1, D)[:, :length]
    scores = torch.einsum("hd,htd->ht", q, k) / math.sqrt(D)
    return torch.einsum("ht,htd->hd", scores.softmax(-1), v)
