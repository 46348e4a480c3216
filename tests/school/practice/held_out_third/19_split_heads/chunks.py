# correct: chunks of the last dimension, stacked as a new second dimension
import torch


def split_heads(x, n_heads):
    return torch.stack(x.chunk(n_heads, dim=-1), dim=1)
