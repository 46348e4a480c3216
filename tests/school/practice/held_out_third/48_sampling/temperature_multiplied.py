# mistake: the logits are multiplied by the temperature
import torch


def probabilities(logits, temperature, top_k=None, top_p=None):
    logits = logits * temperature
    if top_k is not None:
        bar = logits.topk(top_k).values[:, -1:]
        logits = logits.masked_fill(logits < bar, -torch.inf)
    if top_p is not None:
        ordered, order = logits.sort(descending=True)
        p = ordered.softmax(-1)
        removed = p.cumsum(-1) - p >= top_p
        removed = removed.scatter(1, order, removed)
        logits = logits.masked_fill(removed, -torch.inf)
    return logits.softmax(-1)
