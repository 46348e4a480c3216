# mistake: removed tokens are set to 0 after softmax, and the rest is not divided by its sum
import torch


def probabilities(logits, temperature, top_k=None, top_p=None):
    p = torch.softmax(logits / temperature, dim=-1)
    if top_k is not None:
        smallest = p.topk(top_k, dim=-1).values.min(dim=-1, keepdim=True).values
        p = p * (p >= smallest)
    if top_p is not None:
        q = p / p.sum(-1, keepdim=True)
        values, order = q.sort(-1, descending=True)
        keep_sorted = values.cumsum(-1) - values < top_p
        keep = torch.zeros_like(keep_sorted).scatter(-1, order, keep_sorted)
        p = p * keep
    return p
