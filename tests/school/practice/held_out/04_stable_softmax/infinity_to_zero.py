# mistake: replaces −∞ by 0 before exp, so hidden scores get weight.
import torch


def softmax(scores):
    scores = torch.nan_to_num(scores, neginf=0.0)
    top = scores.amax(-1, keepdim=True)
    e = torch.exp(scores - top)
    return e / e.sum(-1, keepdim=True)
