# correct: two loops over Python lists
import torch


def induction_mask(tokens):
    t = tokens.tolist()
    return torch.tensor(
        [[0 < j <= i and t[j - 1] == t[i] for j in range(len(t))] for i in range(len(t))],
        dtype=torch.bool,
    ).reshape(len(t), len(t))
