# mistake: gathers with the sort's indices where it should scatter, which inverts the permutation the wrong way.
import torch


def probabilities(logits, temperature, top_k=None, top_p=None):
    logits = logits / temperature
    if top_k is not None:
        smallest = torch.topk(logits, top_k).values[:, -1, None]
        logits = torch.where(logits < smallest, -torch.inf, logits)
    if top_p is not None:
        p, order = logits.softmax(-1).sort(descending=True)
        removed = p.cumsum(-1) - p >= top_p
        logits = torch.where(removed.gather(1, order), -torch.inf, logits)
    return logits.softmax(-1)
