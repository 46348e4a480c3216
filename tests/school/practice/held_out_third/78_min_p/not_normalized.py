# mistake: the rest is not divided by its sum
import torch


def min_p_probabilities(logits, min_p, temperature=1.0):
    p = (logits / temperature).softmax(dim=-1)
    return p * (p >= min_p * p.amax(dim=-1, keepdim=True))
