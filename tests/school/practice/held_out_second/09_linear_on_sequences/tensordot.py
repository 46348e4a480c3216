# correct: tensordot over the last dimension of both
import torch


def linear(x, weight, bias=None):
    y = torch.tensordot(x, weight, dims=([-1], [1]))
    if bias is None:
        return y
    return y.add(bias)
