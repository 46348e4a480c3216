# mistake: takes the softmax over the tokens, dim=0, for P
import torch
import torch.nn.functional as F


def balance_loss(logits, k):
    T, N = logits.shape
    counts = logits.topk(k, dim=-1).indices.flatten().bincount(minlength=N)
    P = F.softmax(logits, dim=0).mean(0)
    return N * torch.dot(counts / (T * k), P)


def fits(experts, n_experts, capacity):
    seen = torch.zeros(n_experts, dtype=torch.long)
    out = torch.zeros_like(experts, dtype=torch.bool)
    for t in range(experts.shape[0]):
        for j in range(experts.shape[1]):
            e = experts[t, j]
            out[t, j] = seen[e] < capacity
            seen[e] += 1
    return out
