# mistake: sets probabilities to 0 after softmax and does not normalize again.
import torch


def probabilities(logits, temperature, top_k=None, top_p=None):
    p = (logits / temperature).softmax(-1)
    if top_k is not None:
        smallest = p.topk(top_k).values[:, -1:]
        p = torch.where(p >= smallest, p, 0.0)
    if top_p is not None:
        ordered, order = p.sort(descending=True)
        removed = ordered.cumsum(-1) - ordered >= top_p
        p = p.masked_fill(removed.scatter(1, order, removed), 0.0)
    return p
