# correct: the sum of all losses over the number of real tokens
import torch.nn.functional as F


def shift(tokens):
    inputs, targets = tokens[..., :-1], tokens[..., 1:]
    return inputs, targets


def loss(logits, targets, pad):
    total = F.cross_entropy(logits.mT, targets, ignore_index=pad, reduction="sum")
    return total / (targets != pad).sum()
