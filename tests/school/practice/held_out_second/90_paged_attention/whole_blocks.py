# mistake: attends to all places of the blocks, also to what is left over after the text
import math

import torch


def find_slot(table, position, block_size):
    return table[position // block_size].item(), position % block_size


def paged_attention(q, k_pool, v_pool, table, length):
    k = k_pool[table].transpose(0, 1).flatten(1, 2)
    v = v_pool[table].transpose(0, 1).flatten(1, 2)
    weights = (torch.einsum("hd,hsd->hs", q, k) / math.sqrt(q.shape[-1])).softmax(-1)
    return torch.einsum("hs,hsd->hd", weights, v)
