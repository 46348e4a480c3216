# mistake: divides the counts by the number of tokens T instead of all T · k choices, so that the loss is k times too large
import torch
import torch.nn.functional as F


def balance_loss(logits, k):
    T, N = logits.shape
    chosen = logits.topk(k, dim=-1).indices
    f = F.one_hot(chosen, N).sum(1).float().mean(0)
    P = logits.softmax(-1).mean(0)
    return N * (f * P).sum()


def fits(experts, n_experts, capacity):
    count = F.one_hot(experts.flatten(), n_experts).cumsum(0)
    place = count.gather(1, experts.reshape(-1, 1)).view_as(experts)
    return place <= capacity
