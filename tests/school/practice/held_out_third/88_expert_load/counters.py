# correct: counters in dictionaries for both functions
from collections import Counter

import torch


def balance_loss(logits, k):
    T, N = logits.shape
    chosen = Counter(logits.argsort(dim=-1, descending=True)[:, :k].flatten().tolist())
    mean = torch.softmax(logits, dim=-1).sum(dim=0) / T
    return N * sum(chosen[i] / (T * k) * mean[i] for i in range(N))


def fits(experts, n_experts, capacity):
    seen = Counter()
    rows = []
    for row in experts.tolist():
        now = []
        for e in row:
            seen[e] += 1
            now.append(seen[e] <= capacity)
        rows.append(now)
    return torch.tensor(rows)
