"""Three ways to slow rotations down, so that a longer text meets fewer new angles."""

import math

import torch
from torch import Tensor


def linear(frequencies: Tensor, factor: float) -> Tensor:
    """Every pair is slowed down by the factor: (P,) → (P,)"""
    return frequencies / factor


def ntk(frequencies: Tensor, factor: float) -> Tensor:
    """Pair i is divided by factor^(i / (P − 1)): (P,) → (P,)"""
    P = len(frequencies)
    # From 0, the fastest pair, to 1, the slowest:
    depth = torch.arange(P, dtype=frequencies.dtype) / (P - 1)
    return frequencies / factor**depth


def by_parts(
    frequencies: Tensor, factor: float, original_len: int, low: float, high: float
) -> Tensor:
    """Kept at `high` turns within original_len or more, divided at `low` or fewer: (P,) → (P,)"""
    turns = original_len * frequencies / (2 * math.pi)  # a turn is an angle of 2π
    kept = ((turns - low) / (high - low)).clamp(0, 1)
    return kept * frequencies + (1 - kept) * frequencies / factor
