# mistake: divides by the sum without a guard, so that rows without a match are NaN
import torch


def previous_head(x):
    out = x.clone()
    out[1:] = x[:-1]
    out[0] = 0
    return out


def predict_next(x):
    match = torch.tril(x @ previous_head(x).T)
    weights = match / match.sum(dim=1, keepdim=True)
    return weights @ x
