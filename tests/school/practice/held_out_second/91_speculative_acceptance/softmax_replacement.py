# mistake: makes a distribution of max(0, p − q) by softmax instead of dividing by the sum
import torch


def accept_probability(p, q):
    return (p / q).clamp(max=1.0)


def replacement(p, q):
    if torch.allclose(p, q):
        return p
    return torch.softmax((p - q).clamp(min=0), dim=-1)


def verify(p, q, drafted, chances):
    n = 0
    while n < len(drafted) and chances[n] < accept_probability(p[n], q[n])[drafted[n]]:
        n += 1
    return n, (p[n] if n == len(drafted) else replacement(p[n], q[n]))
