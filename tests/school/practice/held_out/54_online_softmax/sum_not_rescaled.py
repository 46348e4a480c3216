# mistake: does not rescale the old sum when the largest score changes.
import torch


def online_softmax(blocks):
    top, total = None, None
    for block in blocks:
        m = block.amax(dim=-1)
        if top is None:
            top = m
            total = torch.exp(block - top[:, None]).sum(-1)
        else:
            top = torch.maximum(top, m)
            total = total + torch.exp(block - top[:, None]).sum(-1)
    return top, total
