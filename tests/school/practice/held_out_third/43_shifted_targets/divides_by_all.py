# mistake: padding counts as 0 but the sum is divided by the number of all tokens
import torch.nn.functional as F


def shift(tokens):
    return tokens[:, :-1], tokens[:, 1:]


def loss(logits, targets, pad):
    nll = -logits.log_softmax(-1).gather(-1, targets.unsqueeze(-1)).squeeze(-1)
    nll = nll.masked_fill(targets == pad, 0.0)
    return nll.mean()
