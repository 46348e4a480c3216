# mistake: slices the first dimension, the batch, instead of the tokens.
import torch.nn.functional as F


def shift(tokens):
    return tokens[:-1], tokens[1:]


def loss(logits, targets, pad):
    V = logits.shape[-1]
    return F.cross_entropy(logits.reshape(-1, V), targets.reshape(-1), ignore_index=pad)
