# mistake: split takes the size of a piece, not the number of pieces, and gets n_heads.
import torch


def split_heads(x, n_heads):
    return torch.stack(x.split(n_heads, dim=-1), dim=1)
