# correct: cuts the width with chunk and stacks the slices as a new dimension
import torch


def split_heads(x, n_heads):
    return torch.stack(x.chunk(n_heads, dim=-1), dim=1)
