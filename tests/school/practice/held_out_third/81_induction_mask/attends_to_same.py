# mistake: attends to the earlier same token itself, not to the one after it
import torch


def induction_mask(tokens):
    same = tokens[:, None] == tokens[None, :]
    return same.tril(-1)
