# mistake: fits serves all first choices before the second choices
import torch
import torch.nn.functional as F


def balance_loss(logits, k):
    T, N = logits.shape
    count = logits.topk(k, -1).indices.flatten().bincount(minlength=N).to(logits.dtype)
    return N * torch.dot(count / count.sum(), logits.softmax(-1).mean(0))


def fits(experts, n_experts, capacity):
    flat = experts.T.flatten()
    place = F.one_hot(flat, n_experts).cumsum(0).gather(1, flat[:, None])[:, 0]
    return (place <= capacity).view(experts.shape[1], experts.shape[0]).T
