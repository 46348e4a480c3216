# correct: a mask of the tokens that occurred by scatter of True, and the penalty as min / max of both forms
import torch


def penalize(logits, seen, penalty):
    occurred = torch.zeros_like(logits, dtype=torch.bool).scatter(1, seen, True)
    lower = torch.minimum(logits / penalty, logits * penalty)
    return torch.where(occurred, lower, logits)
