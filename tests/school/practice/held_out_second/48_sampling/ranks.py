# correct: works with the rank of each token instead of −∞ in the logits
import torch


def probabilities(logits, temperature, top_k=None, top_p=None):
    p = torch.softmax(logits / temperature, dim=-1)
    order = p.argsort(dim=-1, descending=True)
    rank = order.argsort(dim=-1)
    if top_k is not None:
        p = p * (rank < top_k)
        p = p / p.sum(-1, keepdim=True)
    if top_p is not None:
        ordered = p.gather(1, order)
        before = ordered.cumsum(-1) - ordered
        keep = (before < top_p).gather(1, rank)
        p = p * keep
        p = p / p.sum(-1, keepdim=True)
    return p
