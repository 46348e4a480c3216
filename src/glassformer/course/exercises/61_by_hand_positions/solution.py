"""Sinusoidal positions of width 4, and how they compare."""

import math


def position(p: int) -> list[float]:
    """sin and cos of p, then of p / 10"""
    angles = [p / 100 ** (2 * i / 4) for i in range(2)]
    return [wave(angle) for angle in angles for wave in (math.sin, math.cos)]


def dot(a: list[float], b: list[float]) -> float:
    """Σ a · b"""
    return sum(x * y for x, y in zip(a, b, strict=True))


position_0, position_1, position_2 = position(0), position(1), position(2)
dot_0_1 = dot(position_0, position_1)
dot_1_2 = dot(position_1, position_2)  # the same distance, hence the same
dot_0_2 = dot(position_0, position_2)
