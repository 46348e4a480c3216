# mistake: the mean of the row is subtracted instead of the maximum
import torch


def softmax(scores):
    shifted = scores - scores.mean(dim=-1, keepdim=True)
    exps = torch.exp(shifted)
    return exps / torch.sum(exps, dim=-1, keepdim=True)
