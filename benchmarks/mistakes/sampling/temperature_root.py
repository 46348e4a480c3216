# mistake: divides by the square of the temperature
import torch
def probabilities(logits, temperature, top_k=None, top_p=None):
    x = logits / temperature ** 2
    if top_k is not None:
        least = x.topk(top_k).values[:, -1:]
        x = x.masked_fill(x < least, -torch.inf)
    if top_p is not None:
        r, o = x.sort(descending=True)
        p = r.softmax(-1)
        gone = p.cumsum(-1) - p >= top_p
        x = x.masked_fill(torch.zeros_like(gone).scatter(1, o, gone), -torch.inf)
    return x.softmax(-1)
