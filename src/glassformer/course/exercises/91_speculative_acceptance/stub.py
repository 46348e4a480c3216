import torch


def accept_probability(p, q):
    """For each token: how likely it is accepted if the draft drew it: (V,), (V,) → (V,)"""
    ...


def replacement(p, q):
    """What a rejected token is replaced from: (V,), (V,) → (V,), sum 1"""
    ...


def verify(p, q, drafted, chances):
    """How many drafted tokens are accepted, and what the next token is drawn from: (n, (V,))"""
    ...
