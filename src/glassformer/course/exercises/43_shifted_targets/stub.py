import torch.nn.functional as F


def shift(tokens):
    """begin a b end → inputs (begin a b), targets (a b end)"""
    ...


def loss(logits, targets, pad):
    """The mean of −log p(target) over all targets that are not pad"""
    ...
