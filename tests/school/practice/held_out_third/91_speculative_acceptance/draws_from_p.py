# mistake: after a rejection the next token is drawn from p instead of the replacement
import torch


def accept_probability(p, q):
    return (p / q).clamp(max=1.0)


def replacement(p, q):
    rest = (p - q).clamp(min=0.0)
    total = rest.sum()
    return p if total == 0 else rest / total


def verify(p, q, drafted, chances):
    n = 0
    while n < len(drafted) and chances[n] < accept_probability(p[n], q[n])[drafted[n]]:
        n += 1
    return n, p[n]
