# mistake: uses the k probabilities as they are, without dividing them by their sum
import torch


def mixture(x, router, up, down, k):
    p = (x @ router.T).softmax(dim=-1)
    weights, chosen = p.topk(k, dim=-1)
    out = torch.zeros_like(x)
    for i in range(len(router)):
        rows, place = (chosen == i).nonzero(as_tuple=True)
        if len(rows):
            y = (x[rows] @ up[i].T).relu() @ down[i].T
            out[rows] += weights[rows, place, None] * y
    return out
