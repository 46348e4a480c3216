"""Speculative decoding: a draft is accepted so that the target's distribution is unchanged."""

from torch import Tensor


def accept_probability(p: Tensor, q: Tensor) -> Tensor:
    """For each token: how likely it is accepted if the draft drew it: (V,), (V,) → (V,)"""
    return (p / q).clamp(max=1)


def replacement(p: Tensor, q: Tensor) -> Tensor:
    """What a rejected token is replaced from: (V,), (V,) → (V,), sum 1"""
    lacking = (p - q).clamp(min=0)  # drafted too rarely
    total = lacking.sum()
    return lacking / total if total > 0 else p


def verify(p: Tensor, q: Tensor, drafted: Tensor, chances: Tensor) -> tuple[int, Tensor]:
    """How many drafted tokens are accepted, and what the next token is drawn from: (n, (V,))"""
    n = 0
    while n < len(drafted) and chances[n] < accept_probability(p[n], q[n])[drafted[n]]:
        n += 1
    if n == len(drafted):
        return n, p[n]  # all accepted: the target's last row is free
    return n, replacement(p[n], q[n])
