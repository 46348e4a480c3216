# mistake: the inputs are cut, the targets are the same tokens: it learns to copy
import torch.nn.functional as F


def shift(tokens):
    return tokens[:, :-1], tokens[:, :-1]


def loss(logits, targets, pad):
    return F.cross_entropy(logits.flatten(0, 1), targets.flatten(), ignore_index=pad)
