# mistake: writes into the given logits with scatter_
import torch


def penalize(logits, seen, penalty):
    score = torch.gather(logits, 1, seen)
    score = torch.where(score < 0, score * penalty, score / penalty)
    logits.scatter_(1, seen, score)
    return logits
