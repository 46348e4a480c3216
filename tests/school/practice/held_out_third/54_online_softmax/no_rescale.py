# mistake: the old sum is not rescaled when the largest score changes
import torch


def online_softmax(blocks):
    top = total = None
    for block in blocks:
        best = block.amax(-1)
        new = best if top is None else torch.maximum(top, best)
        part = (block - new[:, None]).exp().sum(-1)
        total = part if total is None else total + part
        top = new
    return top, total
