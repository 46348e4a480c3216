# mistake: one bar for the whole batch, from its largest probability
import torch


def min_p_probabilities(logits, min_p, temperature=1.0):
    p = torch.softmax(logits / temperature, dim=-1)
    kept = torch.where(p >= min_p * p.max(), p, 0.0)
    return kept / kept.sum(dim=-1, keepdim=True)
