# mistake: the factor is exp(new - top) instead of exp(top - new)
import torch


def online_softmax(blocks):
    top, total = None, None
    for block in blocks:
        best = block.max(dim=-1).values
        if top is None:
            top = best
            total = torch.exp(block - best[:, None]).sum(dim=-1)
            continue
        new = torch.maximum(top, best)
        total = total * torch.exp(new - top) + torch.exp(block - new[:, None]).sum(dim=-1)
        top = new
    return top, total
