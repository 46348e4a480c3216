# mistake: divides by √D although plain dot products are asked for
import torch
def scores(q, k):
    return torch.matmul(q, k.transpose(-1, -2)) / q.size(-1) ** 0.5
