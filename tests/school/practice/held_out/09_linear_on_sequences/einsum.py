# correct: einsum names the dimensions
import torch


def linear(x, weight, bias=None):
    y = torch.einsum("...c,fc->...f", x, weight)
    if bias is None:
        return y
    return y + bias
