# mistake: marks earlier places of the same token itself, not the place after it
import torch


def induction_mask(tokens):
    same = tokens[:, None] == tokens[None, :]
    return same.tril(-1)
