# mistake: min_p is used as an absolute bar, not relative to the largest probability
import torch


def min_p_probabilities(logits, min_p, temperature=1.0):
    p = (logits / temperature).softmax(-1)
    p = p.masked_fill(p < min_p, 0.0)
    return p / p.sum(-1, keepdim=True)
