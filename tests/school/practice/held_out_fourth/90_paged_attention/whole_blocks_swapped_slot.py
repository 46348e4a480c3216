# mistake: two at once: attends to the left-over places of the last block, and find_slot returns the place in the table instead of the block
import math

import torch


def find_slot(table, position, block_size):
    return position // block_size, position % block_size


def paged_attention(q, k_pool, v_pool, table, length):
    T = k_pool.shape[2]
    n = math.ceil(length / T)
    k = torch.cat([k_pool[b] for b in table[:n].tolist()], dim=1)
    v = torch.cat([v_pool[b] for b in table[:n].tolist()], dim=1)
    w = torch.softmax((k @ q[:, :, None])[..., 0] / math.sqrt(q.shape[1]), dim=-1)
    return (w[:, None, :] @ v)[:, 0]
