# correct: two Python loops that write the definition down
import torch


def induction_mask(tokens):
    n = tokens.numel()
    mask = torch.zeros(n, n, dtype=torch.bool)
    for query in range(n):
        for key in range(1, query + 1):
            mask[query, key] = bool(tokens[key - 1] == tokens[query])
    return mask
