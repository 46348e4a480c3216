# mistake: verify counts all tokens that pass, also those after the first rejection
import torch


def accept_probability(p, q):
    return (p / q).clamp(max=1)


def replacement(p, q):
    r = (p - q).clamp(min=0)
    if r.sum() == 0:
        return p
    return r / r.sum()


def verify(p, q, drafted, chances):
    n = 0
    for i in range(len(drafted)):
        if chances[i] < accept_probability(p[i], q[i])[drafted[i]]:
            n += 1
    if n == len(drafted):
        return n, p[-1]
    return n, replacement(p[n], q[n])
