# mistake: serves the first choices of all tokens before the second ones, as GShard does, instead of token by token
import torch
import torch.nn.functional as F


def balance_loss(logits, k):
    T, N = logits.shape
    counts = logits.topk(k, dim=-1).indices.flatten().bincount(minlength=N)
    f = counts / (T * k)
    return N * (f * logits.softmax(-1).mean(0)).sum()


def fits(experts, n_experts, capacity):
    T, k = experts.shape
    order = experts.T.reshape(-1)
    count = F.one_hot(order, n_experts).cumsum(0)
    place = count.gather(1, order[:, None]).squeeze(1)
    return (place <= capacity).view(k, T).T
