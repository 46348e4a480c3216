# correct: scales the queries beforehand with D^(−1/2) and uses einsum
import torch


def scaled_scores(q, k):
    width = q.size(-1)
    return torch.einsum("...ld,...sd->...ls", q * width**-0.5, k)
