# correct: stays in sorted order throughout and scatters the probabilities once
import torch


def probabilities(logits, temperature, top_k=None, top_p=None):
    values, order = torch.sort(logits / temperature, dim=-1, descending=True)
    if top_k is not None:
        values[:, top_k:] = -torch.inf
    p = torch.softmax(values, dim=-1)
    if top_p is not None:
        before = torch.cat([torch.zeros_like(p[:, :1]), p.cumsum(-1)[:, :-1]], dim=-1)
        p = p * (before < top_p)
        p = p / p.sum(-1, keepdim=True)
    return torch.zeros_like(p).scatter_(1, order, p)
