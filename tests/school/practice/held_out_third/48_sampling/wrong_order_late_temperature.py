# mistake: two at once: top-p before top-k, and temperature applied only at the end
import torch


def probabilities(logits, temperature, top_k=None, top_p=None):
    if top_p is not None:
        ordered, order = logits.sort(descending=True)
        p = ordered.softmax(-1)
        removed = p.cumsum(-1) - p >= top_p
        logits = logits.masked_fill(removed.scatter(1, order, removed), -torch.inf)
    if top_k is not None:
        bar = logits.topk(top_k).values[:, -1:]
        logits = logits.masked_fill(logits < bar, -torch.inf)
    return (logits / temperature).softmax(-1)
