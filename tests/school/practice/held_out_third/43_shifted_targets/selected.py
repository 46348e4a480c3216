# correct: the real targets are selected first, then nll from logsumexp
import torch


def shift(tokens):
    n = tokens.shape[1]
    return tokens.narrow(1, 0, n - 1), tokens.narrow(1, 1, n - 1)


def loss(logits, targets, pad):
    keep = targets != pad
    real, labels = logits[keep], targets[keep]
    own = real[torch.arange(len(labels)), labels]
    return (real.logsumexp(-1) - own).sum() / keep.sum()
