# mistake: two at once: the values are the previous tokens instead of the tokens themselves, and the future is not masked
import torch


def previous_head(x):
    return torch.cat([torch.zeros_like(x[:1]), x[:-1]])


def predict_next(x):
    prev = previous_head(x)
    a = x @ prev.T
    return a @ prev / a.sum(-1, keepdim=True).clamp(min=1)
