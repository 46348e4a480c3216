# mistake: removes the token with which the sum passes p, so that the kept ones add up to less than top_p
import torch


def probabilities(logits, temperature, top_k=None, top_p=None):
    logits = logits / temperature
    if top_k is not None:
        bar = logits.topk(top_k).values[:, -1:]
        logits = logits.masked_fill(logits < bar, -torch.inf)
    if top_p is not None:
        ordered, order = logits.sort(descending=True)
        removed = ordered.softmax(-1).cumsum(-1) > top_p
        removed[:, 0] = False
        logits = logits.masked_fill(removed.scatter(1, order, removed), -torch.inf)
    return logits.softmax(-1)
