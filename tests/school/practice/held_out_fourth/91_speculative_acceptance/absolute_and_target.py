# mistake: two at once: the replacement uses |p − q|, and after a rejection verify returns the row of p
import torch


def accept_probability(p, q):
    return torch.minimum(torch.ones_like(p), p / q)


def replacement(p, q):
    rest = (p - q).abs()
    return p if rest.sum() == 0 else rest / rest.sum()


def verify(p, q, drafted, chances):
    for i, token in enumerate(drafted.tolist()):
        if not chances[i] < accept_probability(p[i], q[i])[token]:
            return i, p[i]
    return len(drafted), p[-1]
