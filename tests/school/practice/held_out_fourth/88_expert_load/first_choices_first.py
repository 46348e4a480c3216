# mistake: the first choices of all tokens are served before the second choices
import torch


def balance_loss(logits, k):
    T, N = logits.shape
    chosen = logits.topk(k, dim=-1).indices
    f = torch.bincount(chosen.flatten(), minlength=N).to(logits) / (T * k)
    return N * (f * logits.softmax(-1).mean(0)).sum()


def fits(experts, n_experts, capacity):
    used = [0] * n_experts
    ok = torch.zeros_like(experts, dtype=torch.bool)
    for column in range(experts.shape[1]):
        for token in range(experts.shape[0]):
            e = int(experts[token, column])
            ok[token, column] = used[e] < capacity
            used[e] += 1
    return ok
