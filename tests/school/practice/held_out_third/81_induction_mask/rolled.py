# mistake: roll wraps around: column 0 asks about the last token
import torch


def induction_mask(tokens):
    same = tokens[:, None] == tokens.roll(1)[None, :]
    return same.tril()
