# correct: verify without a loop, by a cumulative product of acceptances; p − min(p, q) for the replacement
import torch


def accept_probability(p, q):
    return torch.minimum(p, q) / q


def replacement(p, q):
    missing = p - torch.minimum(p, q)
    total = missing.sum()
    return missing / total if total > 0 else p.clone()


def verify(p, q, drafted, chances):
    rows = torch.arange(len(drafted))
    limit = accept_probability(p[: len(drafted)], q)[rows, drafted]
    n = int((chances < limit).long().cumprod(0).sum())
    return n, (p[n] if n == len(drafted) else replacement(p[n], q[n]))
