# mistake: two at once: subtracts the maximum in place, and adds 1 to the sum
import torch


def softmax(scores):
    scores -= scores.max(dim=-1, keepdim=True).values
    e = scores.exp()
    return e / (1 + e.sum(-1, keepdim=True))
