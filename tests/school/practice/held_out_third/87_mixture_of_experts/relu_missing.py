# mistake: ReLU is missing in the experts
import torch


def mixture(x, router, up, down, k):
    p = torch.softmax(x @ router.T, dim=-1)
    w, chosen = p.topk(k, dim=-1)
    w = w / w.sum(-1, keepdim=True)
    out = torch.zeros_like(x)
    for i in range(router.shape[0]):
        rows, place = torch.where(chosen == i)
        out[rows] = out[rows] + w[rows, place, None] * (x[rows] @ up[i].T @ down[i].T)
    return out
