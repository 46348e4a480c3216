# mistake: the replacement is made of |p − q| instead of max(0, p − q)
import torch


def accept_probability(p, q):
    return torch.minimum(torch.ones_like(p), p / q)


def replacement(p, q):
    if torch.equal(p, q):
        return p
    r = (p - q).abs()
    return r / r.sum()


def verify(p, q, drafted, chances):
    n = 0
    while n < len(drafted) and chances[n] < accept_probability(p[n], q[n])[drafted[n]]:
        n += 1
    return n, (p[n] if n == len(drafted) else replacement(p[n], q[n]))
