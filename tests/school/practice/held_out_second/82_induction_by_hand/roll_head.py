# mistake: previous_head uses torch.roll, so that the first place gets the last token
import torch


def previous_head(x):
    return torch.roll(x, 1, dims=0)


def predict_next(x):
    match = (x @ previous_head(x).T).tril()
    total = match.sum(-1, keepdim=True)
    return match @ x / total.clamp(min=1)
