# mistake: assigns the output of an expert with = instead of adding it, so that only the last expert of a token counts
import torch


def mixture(x, router, up, down, k):
    p = (x @ router.T).softmax(dim=-1)
    weights, chosen = p.topk(k, dim=-1)
    weights = weights / weights.sum(-1, keepdim=True)
    out = torch.zeros_like(x)
    for i in range(router.shape[0]):
        rows, place = (chosen == i).nonzero(as_tuple=True)
        y = torch.relu(x[rows] @ up[i].T) @ down[i].T
        out[rows] = weights[rows, place, None] * y
    return out
