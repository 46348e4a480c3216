# mistake: predict_next averages the previous tokens of the places found instead of the tokens at them
import torch


def previous_head(x):
    out = torch.zeros_like(x)
    out[1:] = x[:-1]
    return out


def predict_next(x):
    prev = previous_head(x)
    match = (x @ prev.T).tril()
    total = match.sum(-1, keepdim=True)
    total[total == 0] = 1
    return (match / total) @ prev
