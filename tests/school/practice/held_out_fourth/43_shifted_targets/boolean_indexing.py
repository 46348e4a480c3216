# correct: real targets are selected first, and −log p is logsumexp − logit
import torch


def shift(tokens):
    inputs, targets = torch.split(tokens, [tokens.shape[1] - 1, 1], dim=1)[0], tokens[:, 1:]
    return inputs, targets


def loss(logits, targets, pad):
    real = targets != pad
    rows, wanted = logits[real], targets[real]
    return (rows.logsumexp(1) - rows[torch.arange(len(wanted)), wanted]).mean()
