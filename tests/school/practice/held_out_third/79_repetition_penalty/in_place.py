# mistake: scatter_ changes the given logits
import torch


def penalize(logits, seen, penalty):
    s = logits.gather(1, seen)
    s = torch.where(s < 0, s * penalty, s / penalty)
    return logits.scatter_(1, seen, s)
