# correct: selects the real tokens with a boolean index and gathers log-probabilities
import torch


def shift(tokens):
    length = tokens.size(1)
    return tokens.narrow(1, 0, length - 1), tokens.narrow(1, 1, length - 1)


def loss(logits, targets, pad):
    keep = targets.ne(pad)
    log_p = torch.log_softmax(logits[keep], dim=-1)
    chosen = log_p[torch.arange(log_p.shape[0]), targets[keep]]
    return -chosen.mean()
