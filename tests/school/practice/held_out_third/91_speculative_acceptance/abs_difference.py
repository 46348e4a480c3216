# mistake: the replacement uses |p - q|
import torch


def accept_probability(p, q):
    return torch.minimum(torch.ones_like(p), p / q)


def replacement(p, q):
    rest = (p - q).abs()
    if rest.sum() == 0:
        return p
    return rest / rest.sum()


def verify(p, q, drafted, chances):
    for i, token in enumerate(drafted):
        if chances[i] >= accept_probability(p[i], q[i])[token]:
            return i, replacement(p[i], q[i])
    return len(drafted), p[-1]
