# mistake: rescales by exp(new − old) instead of exp(old − new).
import torch


def online_softmax(blocks):
    top, total = None, 0.0
    for block in blocks:
        largest = block.max(dim=1).values
        new = largest if top is None else torch.maximum(top, largest)
        factor = 1.0 if top is None else torch.exp(new - top)
        total = total * factor + torch.exp(block - new[:, None]).sum(dim=1)
        top = new
    return top, total
