# mistake: two at once: the old total is multiplied by exp(new − old), and the largest score starts at 0
import torch


def online_softmax(blocks):
    top = total = None
    for block in blocks:
        if top is None:
            top = torch.zeros(block.shape[0], dtype=block.dtype)
            total = torch.zeros(block.shape[0], dtype=block.dtype)
        new_top = torch.maximum(top, block.max(dim=1).values)
        total = total * torch.exp(new_top - top) + torch.exp(block - new_top[:, None]).sum(1)
        top = new_top
    return top, total
