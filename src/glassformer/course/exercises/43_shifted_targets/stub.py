import torch.nn.functional as F


def shift(tokens):
    """begin a b end → reads (begin a b), says (a b end)"""
    ...


def loss(logits, targets, pad):
    """The mean of −log p(target) over all targets that are not pad"""
    ...
