# mistake: takes the largest probability of the whole batch instead of that of each row
import torch


def min_p_probabilities(logits, min_p, temperature=1.0):
    p = torch.softmax(logits / temperature, dim=-1)
    p = p * (p >= min_p * p.max())
    return p / p.sum(-1, keepdim=True)
