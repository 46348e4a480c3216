# mistake: only the first choice of each token is counted in f
import torch
import torch.nn.functional as F


def balance_loss(logits, k):
    T, N = logits.shape
    p = logits.softmax(-1).mean(0)
    f = logits.argmax(-1).bincount(minlength=N) / T
    return N * (f * p).sum()


def fits(experts, n_experts, capacity):
    flat = experts.flatten()
    place = F.one_hot(flat, n_experts).cumsum(0).gather(1, flat[:, None])[:, 0]
    return (place <= capacity).view(experts.shape)
