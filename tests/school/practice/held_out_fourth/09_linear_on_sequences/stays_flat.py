# mistake: x is flattened to a matrix and the result does not get its dimensions back
import torch


def linear(x, weight, bias=None):
    flat = x.reshape(-1, x.shape[-1])
    if bias is None:
        return torch.mm(flat, weight.t())
    return torch.addmm(bias, flat, weight.t())
