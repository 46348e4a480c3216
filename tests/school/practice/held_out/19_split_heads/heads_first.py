# mistake: stacks the heads in front of the batch, (H, B, L, D).
import torch


def split_heads(x, n_heads):
    return torch.stack(torch.chunk(x, n_heads, dim=-1))
