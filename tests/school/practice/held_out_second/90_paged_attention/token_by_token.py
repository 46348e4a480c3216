# correct: divmod, and tokens picked one by one through find_slot
import torch


def find_slot(table, position, block_size):
    which, place = divmod(position, block_size)
    return int(table[which]), place


def paged_attention(q, k_pool, v_pool, table, length):
    slots = [find_slot(table, p, k_pool.shape[2]) for p in range(length)]
    keys = torch.stack([k_pool[block, :, place] for block, place in slots])
    values = torch.stack([v_pool[block, :, place] for block, place in slots])
    scores = torch.einsum("hd,shd->hs", q, keys) / q.shape[1] ** 0.5
    return torch.einsum("hs,shd->hd", scores.softmax(1), values)
