# mistake: the nucleus mask stays in sorted order
import torch


def probabilities(logits, temperature, top_k=None, top_p=None):
    logits = logits / temperature
    if top_k is not None:
        kth = torch.topk(logits, top_k, dim=-1).values[:, [-1]]
        logits = torch.where(logits >= kth, logits, -torch.inf)
    if top_p is not None:
        ordered, order = logits.sort(dim=-1, descending=True)
        p = ordered.softmax(dim=-1)
        removed = p.cumsum(dim=-1) - p >= top_p
        logits = logits.masked_fill(removed, -torch.inf)
    return logits.softmax(dim=-1)
