# correct: previous_head as a product with a shifted identity; means in a loop
import torch


def previous_head(x):
    L = x.shape[0]
    return torch.diag(torch.ones(L - 1, dtype=x.dtype), -1) @ x if L > 1 else torch.zeros_like(x)


def predict_next(x):
    prev = previous_head(x)
    out = torch.zeros_like(x)
    for i in range(len(x)):
        found = [j for j in range(i + 1) if torch.equal(prev[j], x[i])]
        if found:
            out[i] = x[found].mean(dim=0)
    return out
