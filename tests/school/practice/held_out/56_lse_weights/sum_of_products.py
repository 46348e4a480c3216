# correct: einsum of two vectors, scale by power
import torch


def weight(q, k, lse, b, h, i, j):
    query, key, row = q[b][h][i], k[b][h][j], lse[b][h][i]
    return torch.exp(torch.einsum("d,d->", query, key) * len(query) ** -0.5 - row)
