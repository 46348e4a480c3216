"""The numbers that a picture of a head shows: one per cell, or one per block of a long text.

A masked cell is NaN, to distinguish it from a weight of 0. A block shows its largest weight, so
that a single large weight stays visible, or its mean.
"""

import itertools
from dataclasses import dataclass
from typing import Literal

import torch
from jaxtyping import Bool, Float
from torch import Tensor

from glassformer.errors import TraceError
from glassformer.functional.statistics.pooling import Map
from glassformer.tracing import Site

Pool = Literal["max", "mean"]
ScaleBy = Literal["quantile", "row"]
POOLS: tuple[Pool, ...] = ("max", "mean")
SCALES: tuple[ScaleBy, ...] = ("quantile", "row")
_FEW_KEYS = 32  # up to which colours are proportional to the weight
_TOP = 0.995  # quantile of a long text's blocks at which the colour scale ends
_CHUNK = 1 << 24  # mask cells computed at a time


@dataclass(frozen=True, kw_only=True)
class Drawing:
    """How weights are mapped to marks or colours."""

    pool: Pool = "max"
    scale: ScaleBy = "quantile"
    first_key: bool = True  # False: leave out the first key, the attention sink of many heads

    def __post_init__(self) -> None:
        if self.pool not in POOLS:
            raise TraceError(f"pool must be max or mean; got {self.pool!r}.")
        if self.scale not in SCALES:
            raise TraceError(f"scale must be quantile or row; got {self.scale!r}.")


@dataclass(frozen=True)
class Scale:
    """A colour scale from 0 to the largest value that it distinguishes."""

    largest: float
    is_rooted: bool  # square-root scale, which makes the small weights of many keys visible

    def share(self, value: float) -> float:
        """The position of a value on the scale, 0 … 1."""
        along = min(max(value / self.largest, 0.0), 1.0)
        return along**0.5 if self.is_rooted else along

    def value(self, share: float) -> float:
        """The value at a position on the scale."""
        return self.largest * (share**2 if self.is_rooted else share)


def head_cells(
    site: Site, head: int, most: tuple[int, int], drawing: Drawing, *, sequence: int = 0
) -> Float[Tensor, "M N"]:
    """The weights of a head, pooled where there are more than `most`; NaN where masked."""
    L, S = site.shape[2:]
    if most[0] >= L and most[1] >= S:
        values = site.weights(head, sequence=sequence).float().cpu()
        seen = site.allowed(head, sequence=sequence).cpu()
        if not drawing.first_key:
            seen = seen.clone()
            seen[:, 0] = False
    else:
        pooled = site.map(head, (min(L, most[0]), min(S, most[1])), sequence=sequence)
        counts = _count_visible(site, head, pooled, sequence)
        values = pooled.maximum.float().cpu()
        if drawing.pool == "mean":
            values = pooled.mass.float().cpu() / counts.clamp(min=1)
        if not drawing.first_key:
            values, counts = _drop_first_key(site, head, pooled, values, counts, drawing, sequence)
        seen = counts > 0
    if drawing.scale == "row":
        largest = values.where(seen, 0.0).amax(-1, keepdim=True)
        values = values / largest.masked_fill(largest == 0, 1.0)
    return values.where(seen, torch.nan)


def fit_scale(cells: list[Float[Tensor, "M N"]], site: Site, drawing: Drawing) -> Scale:
    """One scale for some heads of a site: up to the largest weight of a query with several keys.

    A query with a single key always has weight 1 and would leave all others dark. In a long text,
    the few largest blocks exceed the scale.
    """
    if drawing.scale == "row":
        return Scale(1.0, False)
    chosen = [each[(~each.isnan()).sum(-1) > 1] for each in cells]
    found = torch.cat([each[~each.isnan()] for each in chosen])
    if not len(found):
        return Scale(1.0, False)
    is_long = site.shape[3] > _FEW_KEYS
    top = _quantile(found, _TOP) if is_long else float(found.max())
    return Scale(top or float(found.max()) or 1.0, is_long)


def _count_visible(site: Site, head: int, pooled: Map, sequence: int) -> Float[Tensor, "M N"]:
    """The number of visible cells in each block."""
    rows, cols = pooled.row_edges.tolist(), pooled.col_edges.cpu()
    counts = torch.zeros(len(rows) - 1, len(cols) - 1)
    step = max(1, _CHUNK // max(1, site.shape[3]))
    for a, (low, high) in enumerate(itertools.pairwise(rows)):
        for start in range(low, high, step):
            some = range(start, min(high, start + step))
            seen = site.allowed(head, rows=some, sequence=sequence)
            counts[a] += _count_per_block(seen, cols)
    return counts


def _count_per_block(seen: Bool[Tensor, "R S"], cols: Tensor) -> Float[Tensor, " N"]:
    sums = torch.nn.functional.pad(seen.sum(0).cumsum(0), (1, 0)).cpu()
    return (sums[cols[1:]] - sums[cols[:-1]]).float()


def _drop_first_key(
    site: Site,
    head: int,
    pooled: Map,
    values: Tensor,
    counts: Tensor,
    drawing: Drawing,
    sequence: int,
) -> tuple[Tensor, Tensor]:
    """Recompute the first column of blocks without the first key."""
    rows, width = pooled.row_edges.tolist(), int(pooled.col_edges[1])
    values, counts = values.clone(), counts.clone()
    for a, (low, high) in enumerate(itertools.pairwise(rows)):
        where = {"rows": range(low, high), "cols": range(1, width), "sequence": sequence}
        counts[a, 0] = 0 if width == 1 else int(site.allowed(head, **where).sum())
        if counts[a, 0] > 0:
            weights = site.weights(head, **where).float()
            total = weights.amax() if drawing.pool == "max" else weights.sum() / counts[a, 0]
            values[a, 0] = float(total)
    return values, counts


def _quantile(values: Tensor, q: float) -> float:
    ordered = values.sort().values  # torch.quantile rejects large inputs
    return float(ordered[min(len(ordered) - 1, int(q * len(ordered)))])
