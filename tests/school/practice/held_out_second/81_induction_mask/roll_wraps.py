# mistake: moves the table with torch.roll and forgets that the last column comes round to column 0
import torch


def induction_mask(tokens):
    same = tokens[:, None] == tokens[None, :]
    return torch.roll(same, shifts=1, dims=1).tril()
