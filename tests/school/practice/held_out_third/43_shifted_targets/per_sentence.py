# mistake: the mean is taken per sentence first, then over sentences
import torch.nn.functional as F


def shift(tokens):
    return tokens[:, :-1], tokens[:, 1:]


def loss(logits, targets, pad):
    each = F.cross_entropy(logits.transpose(1, 2), targets, reduction="none")
    real = (targets != pad).float()
    return ((each * real).sum(1) / real.sum(1)).mean()
