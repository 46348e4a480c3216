import torch


def find_slot(table, position, block_size):
    """The block and the place in it where the token at a position is kept: (block, place)"""
    ...


def paged_attention(q, k_pool, v_pool, table, length):
    """One query per head on the cached tokens of a text: (H, D) → (H, D)"""
    ...
