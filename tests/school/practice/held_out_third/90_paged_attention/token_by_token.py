# correct: the tokens are fetched one by one with find_slot
import torch


def find_slot(table, position, block_size):
    number, place = divmod(position, block_size)
    return int(table[number]), place


def paged_attention(q, k_pool, v_pool, table, length):
    size = k_pool.shape[2]
    slots = [find_slot(table, i, size) for i in range(length)]
    k = torch.stack([k_pool[b, :, p] for b, p in slots], dim=1)
    v = torch.stack([v_pool[b, :, p] for b, p in slots], dim=1)
    w = torch.softmax((q[:, None] * k).sum(-1) * q.shape[-1] ** -0.5, dim=-1)
    return (w[..., None] * v).sum(1)
