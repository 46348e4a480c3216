# mistake: inputs and targets are returned in the wrong order
import torch.nn.functional as F


def shift(tokens):
    inputs = tokens[:, 1:]
    targets = tokens[:, :-1]
    return inputs, targets


def loss(logits, targets, pad):
    V = logits.shape[-1]
    return F.cross_entropy(logits.reshape(-1, V), targets.reshape(-1), ignore_index=pad)
