# mistake: applies the temperature only after the filter, so that the bar is that of temperature 1
import torch


def min_p_probabilities(logits, min_p, temperature=1.0):
    p = logits.softmax(dim=-1)
    low = p < min_p * p.amax(dim=-1, keepdim=True)
    return (logits.masked_fill(low, float("-inf")) / temperature).softmax(dim=-1)
