# mistake: two at once: the logits are multiplied by the temperature, and top_k takes the threshold of the first row for all rows
import torch


def probabilities(logits, temperature, top_k=None, top_p=None):
    logits = logits * temperature
    if top_k is not None:
        kth = torch.topk(logits, top_k).values[0, -1]
        logits = logits.masked_fill(logits < kth, -torch.inf)
    if top_p is not None:
        ordered, order = logits.sort(dim=-1, descending=True)
        p = ordered.softmax(-1)
        before = p.cumsum(-1) - p
        ordered = ordered.masked_fill(before >= top_p, -torch.inf)
        logits = torch.empty_like(logits).scatter_(-1, order, ordered)
    return logits.softmax(-1)
