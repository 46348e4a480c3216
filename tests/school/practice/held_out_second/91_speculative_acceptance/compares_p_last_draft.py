# mistake: two at once: verify compares the chance with p of the token instead of its acceptance; and returns the last drafted row of p, p[n − 1], if all pass
import torch


def accept_probability(p, q):
    return (p / q).clamp(max=1.0)


def replacement(p, q):
    r = (p - q).clamp(min=0)
    return r / r.sum() if r.sum() > 0 else p


def verify(p, q, drafted, chances):
    n = 0
    while n < len(drafted) and chances[n] < p[n, drafted[n]]:
        n += 1
    if n == len(drafted):
        return n, p[n - 1]
    return n, replacement(p[n], q[n])
