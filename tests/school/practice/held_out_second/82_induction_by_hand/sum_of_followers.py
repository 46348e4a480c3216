# mistake: adds the tokens that followed up, and does not divide by their number
import torch


def previous_head(x):
    out = torch.zeros_like(x)
    out[1:] = x[:-1]
    return out


def predict_next(x):
    match = (x @ previous_head(x).T).tril()
    return match @ x
