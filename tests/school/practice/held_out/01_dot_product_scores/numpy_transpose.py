# mistake: passes all four axes to transpose, as in NumPy; torch's takes exactly two.
import torch


def scores(q, k):
    return torch.matmul(q, k.transpose(0, 1, 3, 2))
