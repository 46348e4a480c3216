"""Attention on a cache in blocks: the table says where each block of the text lies."""

import torch
from torch import Tensor


def find_slot(table: Tensor, position: int, block_size: int) -> tuple[int, int]:
    """The block and the place in it where the token at a position is kept: (block, place)"""
    return int(table[position // block_size]), position % block_size


def gather(pool: Tensor, table: Tensor, length: int) -> Tensor:
    """The cached tokens of a text in their order: (N, H, T, D) → (H, S, D)"""
    blocks = pool[table]  # (n, H, T, D): in the order of the text
    tokens = blocks.transpose(0, 1).flatten(1, 2)  # (H, n · T, D)
    return tokens[:, :length]  # the rest of the last block is left over


def paged_attention(
    q: Tensor, k_pool: Tensor, v_pool: Tensor, table: Tensor, length: int
) -> Tensor:
    """One query per head on the cached tokens of a text: (H, D) → (H, D)"""
    k, v = gather(k_pool, table, length), gather(v_pool, table, length)
    scores = torch.einsum("hd, hsd -> hs", q, k) / q.shape[-1] ** 0.5
    return torch.einsum("hs, hsd -> hd", scores.softmax(dim=-1), v)
