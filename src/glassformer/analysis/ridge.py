"""Ridge regression from sums alone: y ≈ x + (x − mean) D, shrunk towards y = x.

Positions are weighted by 1 / mean(y²): a final norm divides by that, and without it the few
positions with huge states would outweigh all others.
"""

from functools import partial

import torch
from jaxtyping import Float
from torch import Tensor

_SHRINKAGE = [10.0**n for n in range(-5, 4)]  # relative to the variance of a feature


class Moments:
    """Weighted sums of x, y − x and their products, in float64, on the device of the states."""

    def __init__(self, dim: int, device: torch.device | None = None) -> None:
        zeros = partial(torch.zeros, dtype=torch.float64, device=device)
        self.weight = 0.0
        self.x, self.d, self.yy = (zeros(dim) for _ in range(3))
        self.xx, self.xd = (zeros(dim, dim) for _ in range(2))

    def add(self, x: Float[Tensor, "T C"], y: Float[Tensor, "T C"]) -> None:
        x, y = x.to(self.x), y.to(self.x)
        weights = 1 / y.square().mean(-1, keepdim=True).clamp(min=1e-30)
        d = y - x
        self.weight += float(weights.sum())
        self.x += (weights * x).sum(0)
        self.d += (weights * d).sum(0)
        self.yy += (weights * y.square()).sum(0)
        self.xx += x.mT @ (weights * x)
        self.xd += x.mT @ (weights * d)

    @property
    def mean(self) -> Float[Tensor, " C"]:
        return self.x / self.weight

    @property
    def spread(self) -> Float[Tensor, " C"]:
        """The standard deviation of each feature of x."""
        return (self.xx.diagonal() / self.weight - self.mean.square()).clamp(min=1e-24).sqrt()

    @property
    def size(self) -> Float[Tensor, " C"]:
        """The root mean square of each feature of y."""
        return (self.yy / self.weight).clamp(min=1e-24).sqrt()

    def centre(self) -> tuple[Tensor, Tensor]:
        """The covariances of x with itself, and with y − x."""
        shift = self.d / self.weight
        xx = self.xx / self.weight - torch.outer(self.mean, self.mean)
        return xx, self.xd / self.weight - torch.outer(self.mean, shift)

    def misfit(self, D: Float[Tensor, "C C"], b: Float[Tensor, " C"]) -> float:
        """The mean squared error of y ≈ x + x D + b, but for a constant."""
        xx, xd, n = self.xx / self.weight, self.xd / self.weight, self.weight
        cross = (D * xd).sum() + (b * self.d / n).sum()
        square = (D * (xx @ D)).sum() + 2 * (b * (self.mean @ D)).sum() + b.square().sum()
        return float(square - 2 * cross)


def solve_ridge(fit: Moments, check: Moments) -> tuple[Float[Tensor, "C C"], Float[Tensor, " C"]]:
    """A and b of y ≈ A x + b; how far they are shrunk towards y = x is what `check` likes best."""
    xx, xd = fit.centre()
    scale = fit.spread
    values, basis = torch.linalg.eigh(xx / torch.outer(scale, scale))
    projected = basis.mT @ (xd / scale[:, None])
    best: tuple[float, Tensor, Tensor] | None = None
    for shrinkage in _SHRINKAGE:
        D = basis @ (projected / (values.clamp(min=0) + shrinkage)[:, None]) / scale[:, None]
        b = fit.d / fit.weight - fit.mean @ D
        misfit = check.misfit(D, b)
        if best is None or misfit < best[0]:
            best = misfit, D, b
    assert best is not None
    return torch.eye(len(xx)).to(xx) + best[1].mT, best[2]
