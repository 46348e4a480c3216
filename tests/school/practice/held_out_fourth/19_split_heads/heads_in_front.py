# mistake: the heads come before the batch: (H, B, L, D)
import torch


def split_heads(x, n_heads):
    pieces = torch.chunk(x, n_heads, dim=-1)
    return torch.stack(pieces, dim=0)
