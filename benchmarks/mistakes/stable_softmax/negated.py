# mistake: exp of the negative scores
import torch
def softmax(scores):
    s = scores.amin(dim=-1, keepdim=True) - scores
    e = torch.exp(s)
    return e / e.sum(dim=-1, keepdim=True)
