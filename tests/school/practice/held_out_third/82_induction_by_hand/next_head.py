# mistake: rows move up: each place gets the token after it
import torch


def previous_head(x):
    return torch.cat([x[1:], torch.zeros_like(x[:1])])


def predict_next(x):
    a = (x @ previous_head(x).T).tril()
    n = a.sum(-1, keepdim=True)
    return a @ x / torch.where(n > 0, n, 1.0)
