# mistake: j must be smaller than i, so that a token that repeats the one before it misses itself
import torch


def induction_mask(tokens):
    L = len(tokens)
    mask = torch.zeros(L, L, dtype=torch.bool)
    for i in range(L):
        for j in range(1, i):
            mask[i, j] = bool(tokens[j - 1] == tokens[i])
    return mask
