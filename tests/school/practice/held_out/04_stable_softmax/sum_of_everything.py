# mistake: divides by the sum over the whole tensor, so the rows do not sum to 1.
import torch


def softmax(scores):
    top, _ = scores.max(dim=-1, keepdim=True)
    e = torch.exp(scores - top)
    return e / torch.sum(e)
