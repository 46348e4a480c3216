# mistake: the end of the last block is read too
import math

import torch


def find_slot(table, position, block_size):
    return int(table[position // block_size]), position % block_size


def paged_attention(q, k_pool, v_pool, table, length):
    k = k_pool[table].transpose(0, 1).flatten(1, 2)
    v = v_pool[table].transpose(0, 1).flatten(1, 2)
    scores = torch.einsum("hd,htd->ht", q, k) / math.sqrt(q.shape[-1])
    return torch.einsum("ht,htd->hd", scores.softmax(-1), v)
