# mistake: ignores the temperature
import torch


def min_p_probabilities(logits, min_p, temperature=1.0):
    p = torch.softmax(logits, dim=-1)
    p = torch.where(p >= min_p * p.amax(-1, keepdim=True), p, 0.0)
    return p / p.sum(-1, keepdim=True)
