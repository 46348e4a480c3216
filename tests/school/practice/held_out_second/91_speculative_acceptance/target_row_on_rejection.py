# mistake: after a rejection verify returns the row of p itself instead of the replacement
import torch


def accept_probability(p, q):
    return (p / q).clamp(max=1.0)


def replacement(p, q):
    r = torch.relu(p - q)
    return r / r.sum() if r.sum() > 0 else p


def verify(p, q, drafted, chances):
    for i, token in enumerate(drafted.tolist()):
        if chances[i] >= accept_probability(p[i], q[i])[token]:
            return i, p[i]
    return len(drafted), p[-1]
