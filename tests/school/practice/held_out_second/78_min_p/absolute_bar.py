# mistake: compares the probabilities with min_p itself, not with min_p times the largest of the row
import torch


def min_p_probabilities(logits, min_p, temperature=1.0):
    p = (logits / temperature).softmax(dim=-1)
    p = torch.where(p >= min_p, p, torch.zeros_like(p))
    return p / p.sum(dim=-1, keepdim=True)
