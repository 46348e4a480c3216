# mistake: torch's max with a dimension returns values and indices, and the pair is subtracted.
import torch


def softmax(scores):
    shifted = scores - scores.max(dim=-1, keepdim=True)
    e = torch.exp(shifted)
    return e / e.sum(dim=-1, keepdim=True)
