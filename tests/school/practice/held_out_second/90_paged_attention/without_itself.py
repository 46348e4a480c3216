# mistake: leaves the newest token itself out: uses only length − 1 tokens
import math

import torch


def find_slot(table, position, block_size):
    return int(table[position // block_size]), position % block_size


def paged_attention(q, k_pool, v_pool, table, length):
    k = k_pool[table].transpose(0, 1).flatten(1, 2)[:, : length - 1]
    v = v_pool[table].transpose(0, 1).flatten(1, 2)[:, : length - 1]
    weights = (torch.einsum("hd,hsd->hs", q, k) / math.sqrt(q.shape[-1])).softmax(-1)
    return torch.einsum("hs,hsd->hd", weights, v)
