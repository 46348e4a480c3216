# mistake: starts with top = 0, which stays the largest if all scores are negative.
import torch


def online_softmax(blocks):
    top = total = None
    for block in blocks:
        if top is None:
            top = torch.zeros(block.shape[0])
            total = torch.zeros(block.shape[0])
        new = torch.maximum(top, block.amax(-1))
        total = total * torch.exp(top - new) + torch.exp(block - new[:, None]).sum(-1)
        top = new
    return top, total
