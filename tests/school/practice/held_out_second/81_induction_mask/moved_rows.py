# mistake: moves the table down by a row instead of to the right by a column: it compares token j with the token before i
import torch


def induction_mask(tokens):
    L = len(tokens)
    same = tokens[:, None] == tokens[None, :]
    mask = torch.zeros(L, L, dtype=torch.bool)
    mask[1:] = same[:-1]
    return mask.tril()
