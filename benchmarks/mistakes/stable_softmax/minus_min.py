# mistake: subtracts the minimum, overflows for large scores
import torch
def softmax(scores):
    e = torch.exp(scores - scores.min(dim=-1, keepdim=True).values)
    return e / e.sum(dim=-1, keepdim=True)
