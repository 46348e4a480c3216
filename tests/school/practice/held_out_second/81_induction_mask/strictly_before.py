# mistake: keeps only j < i, so that a token repeated at once does not attend to itself
import torch


def induction_mask(tokens):
    L = len(tokens)
    mask = torch.zeros(L, L, dtype=torch.bool)
    mask[:, 1:] = tokens[:, None] == tokens[None, :-1]
    return torch.tril(mask, diagonal=-1)
