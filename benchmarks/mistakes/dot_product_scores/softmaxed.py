# mistake: applies softmax to the scores
import torch
def scores(q, k):
    s = torch.matmul(q, k.transpose(-1, -2))
    return torch.softmax(s, dim=-1)
