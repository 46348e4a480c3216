"""Operands that differ by rotations of pairs: positions and frequencies, read off the angles.

Pair i of a head at position p is turned by the angle p · ω_i, with ω_i = base^(−i / P). What one
run has turned further than the other says in what they differ:

    angle = s · ω_i            the positions of one are ahead by s
    angle = p · (f − 1) · ω_i  the positions of one are multiplied by f
    angle = p · (y^i − x^i)    the bases differ: x = base_a^(−1 / P), y = base_b^(−1 / P)
"""

import math
from collections.abc import Iterator
from itertools import pairwise
from typing import Any

import torch
from jaxtyping import Complex, Float
from torch import Tensor

_SMALL = 1e-3  # an angle that is none


def find_rotation(
    a: Float[Tensor, "H R D"], b: Float[Tensor, "H R D"], positions: list[int], most: float
) -> tuple[dict[str, Any], float] | None:
    """The law of the angles, and the share of the difference that it leaves."""
    steps = [y - x for x, y in pairwise(positions)]
    if len(positions) < 4 or set(steps) != {1}:
        return None
    for layout, x, y in _as_pairs(a, b):
        turned = (y * x.conj()).sum(0)  # (R, P): the common angle of all heads
        whole = (y - x).abs().square().sum().sqrt()
        angle = torch.polar(torch.ones_like(turned.abs()), turned.angle())
        left = float((y - x * angle).abs().square().sum().sqrt() / whole)
        if left > most:
            continue
        places = torch.tensor(positions, dtype=torch.float64)
        slope, offset = _fit_line(turned, places)
        law = torch.polar(torch.ones_like(turned.abs()), places[:, None] * slope + offset)
        values: dict[str, Any] = {"layout": layout}
        if float((y - x * law).abs().square().sum().sqrt() / whole) <= most:
            values |= _name_law(slope, offset)
        return values, left
    return None


def find_turned_constant(
    a: Float[Tensor, "H R D"], b: Float[Tensor, "H R D"], positions: list[int]
) -> float | None:
    """How much of b − a is not one vector, turned by the same angle from position to position."""
    if len(positions) < 4 or positions != list(range(positions[0], positions[-1] + 1)):
        return None
    best = None
    for _, x, y in _as_pairs(a, b):
        delta = y - x  # (H, R, P)
        product = (delta[:, 1:] * delta[:, :-1].conj()).sum((0, 1))
        turn = torch.polar(torch.ones_like(product.abs()), product.angle())
        rest = delta[:, 1:] - delta[:, :-1] * turn
        left = float(rest.abs().square().sum().sqrt() / delta.abs().square().sum().sqrt())
        best = left if best is None else min(best, left)
    return best


def _as_pairs(
    a: Tensor, b: Tensor
) -> Iterator[tuple[str, Complex[Tensor, "H R P"], Complex[Tensor, "H R P"]]]:
    """Pairs of coordinates as complex numbers, in either layout; also where a part is turned."""
    D = a.shape[-1]
    for width in (D, D // 2, D // 4):
        if width < 4 or width % 2 or not torch.equal(a[..., width:], b[..., width:]):
            continue
        half = width // 2
        for layout in ("half", "interleaved"):
            found = [
                torch.complex(t[..., :half].contiguous(), t[..., half:width].contiguous())
                if layout == "half"
                else torch.complex(t[..., :width:2].contiguous(), t[..., 1:width:2].contiguous())
                for t in (a, b)
            ]
            yield layout, found[0], found[1]


def _fit_line(
    turned: Complex[Tensor, "R P"], places: Float[Tensor, " R"]
) -> tuple[Float[Tensor, " P"], Float[Tensor, " P"]]:
    """angle = slope · position + offset: the slope by steps first, then by all positions."""
    step = (turned[1:] * turned[:-1].conj()).sum(0).angle()
    rest = turned * torch.polar(torch.ones_like(turned.abs()), -places[:, None] * step)
    middle = rest.sum(0).angle()
    weights = turned.abs()
    centred = torch.polar(weights, rest.angle() - middle).angle()  # small: no wrapping
    total = weights.sum(0).clamp(min=1e-300)
    mean = (weights * places[:, None]).sum(0) / total
    mean_angle = (weights * centred).sum(0) / total
    dx = places[:, None] - mean
    spread = (weights * dx.square()).sum(0).clamp(min=1e-300)
    correction = (weights * dx * (centred - mean_angle)).sum(0) / spread
    offset = middle + mean_angle - correction * mean
    return step + correction, torch.remainder(offset + math.pi, 2 * math.pi) - math.pi


def _name_law(slope: Float[Tensor, " P"], offset: Float[Tensor, " P"]) -> dict[str, Any]:
    P = len(slope)
    if P < 3:
        return {"law": "angles"}
    is_still, is_anchored = float(slope.abs().max()) < _SMALL, float(offset.abs().max()) < _SMALL
    if is_still:
        ratio = _find_ratio(offset)
        if ratio is not None:
            return {"law": "positions", "by": float(offset[0]), "base": ratio**-P}
    elif is_anchored and abs(float(slope[0])) < _SMALL:
        found = _find_bases(slope)
        if found is not None:
            return {"law": "base", "first": found[0], "second": found[1]}
    elif is_anchored:
        ratio = _find_ratio(slope)
        if ratio is not None:
            return {"law": "factor", "factor": 1 + float(slope[0]), "base": ratio**-P}
    return {"law": "angles"}


def _find_ratio(values: Float[Tensor, " P"]) -> float | None:
    """The ratio of a geometric series, where it is one."""
    if abs(float(values[0])) < _SMALL:
        return None
    ratio = float(values[1] / values[0])
    series = values[0] * ratio ** torch.arange(len(values), dtype=torch.float64)
    is_close = float((series - values).abs().max()) < 10 * _SMALL * abs(float(values[0]))
    return ratio if 0 < ratio < 1 and is_close else None


def _find_bases(slope: Float[Tensor, " P"]) -> tuple[float, float] | None:
    """x and y of y^i − x^i: their difference is that of pair 1, their sum the ratio to pair 2."""
    P = len(slope)
    if abs(float(slope[1])) < 1e-9:
        return None
    difference, total = float(slope[1]), float(slope[2] / slope[1])
    x, y = (total - difference) / 2, (total + difference) / 2
    if not (0 < x < 1 and 0 < y < 1):
        return None
    i = torch.arange(P, dtype=torch.float64)
    if float((y**i - x**i - slope).abs().max()) > 10 * _SMALL * float(slope.abs().max()):
        return None
    return x**-P, y**-P
