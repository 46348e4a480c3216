# mistake: rescales the old sum by exp(new − top) instead of exp(top − new)
import torch


def online_softmax(blocks):
    top = total = None
    for block in blocks:
        largest = block.amax(dim=-1)
        if top is None:
            top = largest
            total = torch.exp(block - top[:, None]).sum(-1)
            continue
        new = torch.maximum(top, largest)
        total = total * torch.exp(new - top) + torch.exp(block - new[:, None]).sum(-1)
        top = new
    return top, total
