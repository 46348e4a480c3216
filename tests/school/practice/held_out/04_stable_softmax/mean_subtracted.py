# mistake: subtracts the mean of the row instead of its maximum, so it still overflows and fails on −∞.
import torch


def softmax(scores):
    centered = scores - scores.mean(dim=-1, keepdim=True)
    e = torch.exp(centered)
    return e / torch.sum(e, dim=-1, keepdim=True)
