# mistake: applies relu to the output of the expert, after down, instead of between up and down
import torch


def mixture(x, router, up, down, k):
    p = (x @ router.T).softmax(dim=-1)
    weights, chosen = p.topk(k, dim=-1)
    weights = weights / weights.sum(-1, keepdim=True)
    out = torch.zeros_like(x)
    for t in range(len(x)):
        for w, i in zip(weights[t], chosen[t]):
            out[t] += w * torch.relu(down[i] @ (up[i] @ x[t]))
    return out
