# mistake: reshapes the logits to (B, V, L) where it should transpose them.
import torch.nn.functional as F


def shift(tokens):
    return tokens[:, :-1], tokens[:, 1:]


def loss(logits, targets, pad):
    B, L, V = logits.shape
    return F.cross_entropy(logits.reshape(B, V, L), targets, ignore_index=pad)
