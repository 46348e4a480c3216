# mistake: returns the logarithm of the weights
import torch
def softmax(scores):
    s = scores - scores.max(dim=-1, keepdim=True)[0]
    return s - s.exp().sum(dim=-1, keepdim=True).log()
