# mistake: two at once: sorts in ascending order, so top-p keeps the least likely tokens, and top-k keeps one token too many.
import torch


def probabilities(logits, temperature, top_k=None, top_p=None):
    logits = logits / temperature
    if top_k is not None:
        limit = logits.sort(descending=True).values[:, top_k : top_k + 1]
        logits = logits.masked_fill(logits < limit, -torch.inf)
    if top_p is not None:
        ordered, order = logits.sort()
        p = ordered.softmax(-1)
        removed = p.cumsum(-1) - p >= top_p
        logits = logits.masked_fill(removed.scatter(1, order, removed), -torch.inf)
    return logits.softmax(-1)
