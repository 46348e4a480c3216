# mistake: two at once: the sum is of exp(score) without the largest score, and it starts at 1.
import torch


def online_softmax(blocks):
    top, total = None, 1.0
    for block in blocks:
        largest = block.amax(-1)
        top = largest if top is None else torch.maximum(top, largest)
        total = total + block.exp().sum(-1)
    return top, total
