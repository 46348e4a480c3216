# correct: one score at a time instead of one block at a time
import torch


def online_softmax(blocks):
    top = total = None
    for block in blocks:
        for s in block.unbind(dim=1):
            if top is None:
                top, total = s.clone(), torch.ones_like(s)
                continue
            larger = s > top
            total = torch.where(larger, total * torch.exp(top - s) + 1, total + torch.exp(s - top))
            top = torch.where(larger, s, top)
    return top, total
