# mistake: j < i, so the case of a repeated token (A A) at j = i is lost
import torch


def induction_mask(tokens):
    L = len(tokens)
    same = tokens[:, None] == tokens[None, :]
    mask = torch.zeros(L, L, dtype=torch.bool)
    mask[:, 1:] = same[:, :-1]
    return mask.tril(-1)
