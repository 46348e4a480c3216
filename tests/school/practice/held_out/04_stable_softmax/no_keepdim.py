# mistake: forgets keepdim, so the row maxima and sums broadcast along the wrong dimension.
import torch


def softmax(scores):
    m = scores.amax(dim=-1)
    e = torch.exp(scores - m)
    return e / e.sum(dim=-1)
