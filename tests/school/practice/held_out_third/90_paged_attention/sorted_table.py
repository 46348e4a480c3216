# mistake: two at once: the table is sorted before it is read, and place counts from 1
import math

import torch


def find_slot(table, position, block_size):
    return int(table[position // block_size]), position % block_size + 1


def paged_attention(q, k_pool, v_pool, table, length):
    table = table.sort().values
    k = k_pool[table].transpose(0, 1).flatten(1, 2)[:, :length]
    v = v_pool[table].transpose(0, 1).flatten(1, 2)[:, :length]
    scores = torch.einsum("hd,htd->ht", q, k) / math.sqrt(q.shape[1])
    return torch.einsum("ht,htd->hd", scores.softmax(-1), v)
