# correct: a cumulative sum of one-hot rows counts the earlier choices
import torch
import torch.nn.functional as F


def balance_loss(logits, k):
    T, N = logits.shape
    hits = torch.zeros_like(logits).scatter(1, logits.detach().topk(k).indices, 1.0)
    share = hits.mean(0) / k
    return N * torch.dot(share, torch.softmax(logits, 1).mean(0))


def fits(experts, n_experts, capacity):
    flat = F.one_hot(experts.flatten(), n_experts)
    place = (flat.cumsum(0) * flat).sum(1)
    return (place <= capacity).view_as(experts)
