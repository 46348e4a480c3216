# correct: log_softmax and gather, with the mean by hand over the real targets
import torch


def shift(tokens):
    n = tokens.shape[1]
    return tokens.narrow(1, 0, n - 1), tokens.narrow(1, 1, n - 1)


def loss(logits, targets, pad):
    log_p = torch.log_softmax(logits, dim=2).gather(2, targets.unsqueeze(2)).squeeze(2)
    real = targets.ne(pad)
    return -log_p[real].sum() / real.sum()
