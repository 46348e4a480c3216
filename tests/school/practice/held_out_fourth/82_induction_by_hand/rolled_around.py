# mistake: the first place gets the last token, because roll wraps around
import torch


def previous_head(x):
    return torch.roll(x, 1, dims=0)


def predict_next(x):
    match = x @ previous_head(x).T
    match = match.tril()
    return match @ x / match.sum(1, keepdim=True).clamp(min=1)
