# mistake: k is not transposed before the matrix product.
import torch


def scores(q, k):
    return torch.matmul(q, k)
