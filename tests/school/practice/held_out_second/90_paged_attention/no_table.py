# mistake: find_slot returns the number of the block within the text and does not look it up in the table
import math

import torch


def find_slot(table, position, block_size):
    return position // block_size, position % block_size


def paged_attention(q, k_pool, v_pool, table, length):
    k = k_pool[table].transpose(0, 1).flatten(1, 2)[:, :length]
    v = v_pool[table].transpose(0, 1).flatten(1, 2)[:, :length]
    scores = (k @ q[:, :, None]).squeeze(-1) / math.sqrt(q.shape[-1])
    return (scores.softmax(-1)[:, None] @ v).squeeze(1)
