# correct: counts in plain Python lists and a dictionary of seats
import torch


def balance_loss(logits, k):
    n_tokens, n_experts = logits.shape
    tally = [0] * n_experts
    for row in logits.detach():
        for expert in row.argsort(descending=True)[:k].tolist():
            tally[expert] += 1
    mean_p = logits.softmax(1).mean(0)
    return n_experts * sum(tally[i] / (n_tokens * k) * mean_p[i] for i in range(n_experts))


def fits(experts, n_experts, capacity):
    free = dict.fromkeys(range(n_experts), capacity)
    answer = []
    for token in experts.tolist():
        row = []
        for expert in token:
            row.append(free[expert] > 0)
            free[expert] -= 1
        answer.append(row)
    return torch.tensor(answer, dtype=torch.bool).reshape(experts.shape)
