"""How a check looks at dropout: by what it must do, not by how it is called.

nn.Dropout, F.dropout and a mask drawn by hand use the random numbers differently, and each is
right. What they share does not depend on chance: nearly certain dropping leaves nothing, and
otherwise each number is either gone or divided by 1 − p, gone about as often as p says.
"""

import torch
from torch import Tensor

# Certain, as far as anybody can wait; and 1 / (1 − p), which a mask by hand needs, is finite.
CERTAIN = 1 - 2.0**-40
P = 0.3
_SIGMAS = 6.0


def multiples(out: Tensor, plain: Tensor, p: float = P) -> str:
    """By what dropout has multiplied each number: `0, 1/(1−p)` where it acted once.

    >>> plain = torch.linspace(1, 2, 2000, dtype=torch.float64)
    >>> multiples(torch.nn.functional.dropout(plain, P), plain)
    '0, 1/(1−p)'
    >>> multiples(plain, plain)
    '1'
    """
    if out.shape != plain.shape:
        return f"({', '.join(map(str, out.shape))})"
    factors = {"0": 0.0, "1": 1.0, "1/(1−p)": 1 / (1 - p), "1/(1−p)²": 1 / (1 - p) ** 2}
    left = torch.ones_like(plain, dtype=torch.bool)
    seen = []
    for name, factor in factors.items():
        hit = (out - factor * plain).abs() <= 1e-5 * plain.abs()
        if hit.any():
            seen.append(name)
        left &= ~hit
    if left.any():
        seen.append("?")
    return ", ".join(seen)


def dropped_share(out: Tensor, p: float = P) -> str:
    """Which share of the numbers is gone: `p` if it is about that, else the share."""
    share = (out == 0).double().mean().item()
    error = _SIGMAS * (p * (1 - p) / out.numel()) ** 0.5
    return "p" if abs(share - p) <= error else f"{share:.1f}"
