import math

import torch


def linear(frequencies, factor):
    """Every pair is slowed down by the factor: (P,) → (P,)"""
    ...


def ntk(frequencies, factor):
    """Pair i is divided by factor^(i / (P − 1)): (P,) → (P,)"""
    ...


def by_parts(frequencies, factor, original_len, low, high):
    """Kept at `high` turns within original_len or more, divided at `low` or fewer: (P,) → (P,)"""
    ...
