# correct: exp of score − maximum − log of the sum
import torch


def softmax(scores):
    shifted = scores - torch.amax(scores, dim=-1, keepdim=True)
    return torch.exp(shifted - torch.log(torch.sum(torch.exp(shifted), dim=-1, keepdim=True)))
