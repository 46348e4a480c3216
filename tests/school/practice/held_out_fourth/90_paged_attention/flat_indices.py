# correct: the pool is flattened, and flat indices pick the tokens
import torch


def find_slot(table, position, block_size):
    row, place = divmod(position, block_size)
    return int(table[row]), place


def paged_attention(q, k_pool, v_pool, table, length):
    N, H, T, D = k_pool.shape
    slots = torch.tensor([find_slot(table, p, T) for p in range(length)])
    flat = slots[:, 0] * T + slots[:, 1]
    keys = k_pool.transpose(1, 2).reshape(N * T, H, D)[flat]
    values = v_pool.transpose(1, 2).reshape(N * T, H, D)[flat]
    weights = torch.einsum("hd,shd->hs", q, keys).mul(D**-0.5).softmax(1)
    return torch.einsum("hs,shd->hd", weights, values)
