# mistake: the bar is computed without the temperature, which is applied afterwards
import torch


def min_p_probabilities(logits, min_p, temperature=1.0):
    p = logits.softmax(-1)
    low = p < min_p * p.amax(-1, keepdim=True)
    return (logits.masked_fill(low, -torch.inf) / temperature).softmax(-1)
