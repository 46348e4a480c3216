# correct: acceptances as a running product, no loop
import torch


def accept_probability(p, q):
    return torch.where(p >= q, torch.ones_like(p), p / q)


def replacement(p, q):
    rest = torch.relu(p - q)
    total = rest.sum(-1, keepdim=True)
    return torch.where(total > 0, rest / total.clamp(min=1e-30), p)


def verify(p, q, drafted, chances):
    odds = accept_probability(p[: len(q)], q).gather(1, drafted[:, None]).squeeze(1)
    n = int((chances < odds).long().cumprod(0).sum())
    return n, (replacement(p[n], q[n]) if n < len(q) else p[n])
