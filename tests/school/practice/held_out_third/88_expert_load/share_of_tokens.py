# mistake: f is divided by T only, not by T times k
import torch
import torch.nn.functional as F


def balance_loss(logits, k):
    T, N = logits.shape
    count = torch.zeros(N).scatter_add(0, logits.topk(k, dim=-1).indices.flatten(), torch.ones(T * k))
    f = count / T
    P = logits.softmax(dim=-1).mean(dim=0)
    return N * (f * P).sum()


def fits(experts, n_experts, capacity):
    used = [0] * n_experts
    out = torch.zeros_like(experts, dtype=torch.bool)
    for t in range(experts.shape[0]):
        for c in range(experts.shape[1]):
            e = int(experts[t, c])
            out[t, c] = used[e] < capacity
            used[e] += 1
    return out
