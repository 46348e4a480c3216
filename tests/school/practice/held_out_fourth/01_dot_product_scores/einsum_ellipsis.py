# correct: one einsum with an ellipsis
import torch


def scores(q, k):
    return torch.einsum("...id,...jd->...ij", q, k)
