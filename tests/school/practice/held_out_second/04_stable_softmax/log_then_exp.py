# correct: subtracts the maximum, takes the logarithm of the sum and exponentiates the difference
import torch


def softmax(scores):
    shifted = scores - torch.max(scores, dim=-1, keepdim=True)[0]
    return torch.exp(shifted - shifted.exp().sum(dim=-1, keepdim=True).log())
