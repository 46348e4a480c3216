# mistake: compares the running count, which includes the choice itself, with < instead of ≤: each expert has one place too few
import torch
import torch.nn.functional as F


def balance_loss(logits, k):
    T, N = logits.shape
    counts = logits.topk(k, dim=-1).indices.flatten().bincount(minlength=N)
    f = counts / (T * k)
    return N * (f * logits.softmax(-1).mean(0)).sum()


def fits(experts, n_experts, capacity):
    count = F.one_hot(experts.flatten(), n_experts).cumsum(0)
    place = count.gather(1, experts.reshape(-1, 1)).view_as(experts)
    return place < capacity
