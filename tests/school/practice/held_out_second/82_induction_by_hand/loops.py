# correct: loops with argmax tokens and torch.stack of the mean of slices
import torch


def previous_head(x):
    return torch.nn.functional.pad(x, (0, 0, 1, 0))[:-1]


def predict_next(x):
    ids = x.argmax(-1).tolist()
    rows = []
    for i, token in enumerate(ids):
        followers = [x[j] for j in range(1, i + 1) if ids[j - 1] == token]
        rows.append(torch.stack(followers).mean(0) if followers else torch.zeros_like(x[i]))
    return torch.stack(rows)
