# mistake: the sum of the tokens that followed, not their mean
import torch


def previous_head(x):
    out = torch.zeros_like(x)
    out[1:] = x[:-1]
    return out


def predict_next(x):
    return (x @ previous_head(x).T).tril() @ x
