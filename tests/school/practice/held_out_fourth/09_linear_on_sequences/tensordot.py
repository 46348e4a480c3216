# correct: torch.tensordot over the last dimensions
import torch


def linear(x, weight, bias=None):
    y = torch.tensordot(x, weight, dims=([x.dim() - 1], [1]))
    return y if bias is None else y.add(bias)
