# mistake: the row is shifted instead of the column: the token before i is compared with j
import torch


def induction_mask(tokens):
    L = tokens.shape[0]
    same = tokens[:, None] == tokens[None, :]
    out = torch.zeros(L, L, dtype=torch.bool)
    out[1:] = same[:-1]
    return out.tril()
