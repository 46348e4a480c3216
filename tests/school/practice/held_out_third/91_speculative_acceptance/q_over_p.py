# mistake: the ratio is q / p
import torch


def accept_probability(p, q):
    return (q / p).clamp(max=1)


def replacement(p, q):
    rest = (p - q).clamp(min=0)
    return rest / rest.sum() if rest.sum() > 0 else p


def verify(p, q, drafted, chances):
    n = 0
    while n < len(drafted) and chances[n] < accept_probability(p[n], q[n])[drafted[n]]:
        n += 1
    if n == len(drafted):
        return n, p[n]
    return n, replacement(p[n], q[n])
