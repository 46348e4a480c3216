# mistake: all accepted tokens are counted, also those after the first rejection
import torch


def accept_probability(p, q):
    return (p / q).clamp(max=1.0)


def replacement(p, q):
    rest = (p - q).clamp(min=0.0)
    total = rest.sum()
    return p if total == 0 else rest / total


def verify(p, q, drafted, chances):
    i = torch.arange(len(drafted))
    ok = chances < accept_probability(p[:-1], q)[i, drafted]
    n = int(ok.sum())
    if n == len(drafted):
        return n, p[-1]
    return n, replacement(p[n], q[n])
