# mistake: applies the mask of the sorted order to the unsorted logits.
import torch


def probabilities(logits, temperature, top_k=None, top_p=None):
    logits = logits / temperature
    if top_k is not None:
        smallest = logits.topk(top_k).values[:, -1:]
        logits = logits.masked_fill(logits < smallest, float("-inf"))
    if top_p is not None:
        ordered, order = logits.sort(descending=True)
        p = ordered.softmax(-1)
        removed = p.cumsum(-1) - p >= top_p
        logits = logits.masked_fill(removed, float("-inf"))
    return logits.softmax(-1)
