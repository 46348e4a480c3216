"""What a picture shows of a head: a number for each cell, or for each block of a long text.

A cell that no query may see has no number (NaN): hidden is not the same as a weight of 0, and even
attention is neither. Blocks show their largest weight, so that a single strong cell stays, or their
mean.
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
_FEW_KEYS = 32  # whose weights are large enough for colours in proportion
_TOP = 0.995  # of the blocks of a long text lie below the end of the scale
_CHUNK = 1 << 24  # cells whose mask is looked at together


@dataclass(frozen=True, kw_only=True)
class Drawing:
    """How weights become marks or colours."""

    pool: Pool = "max"
    scale: ScaleBy = "quantile"
    first_key: bool = True  # False: the first key, on which many heads rest, is left out

    def __post_init__(self) -> None:
        if self.pool not in POOLS:
            raise TraceError(f"pool must be max or mean; got {self.pool!r}.")
        if self.scale not in SCALES:
            raise TraceError(f"scale must be quantile or row; got {self.scale!r}.")


@dataclass(frozen=True)
class Scale:
    """From 0 to the largest value that has a colour of its own."""

    largest: float
    is_rooted: bool  # small weights of many keys can be seen by their square roots

    def share(self, value: float) -> float:
        """How far along the scale a value lies, 0 … 1."""
        along = min(max(value / self.largest, 0.0), 1.0)
        return along**0.5 if self.is_rooted else along

    def value(self, share: float) -> float:
        """The value that lies so far along."""
        return self.largest * (share**2 if self.is_rooted else share)


def head_cells(
    site: Site, head: int, most: tuple[int, int], drawing: Drawing, *, sequence: int = 0
) -> Float[Tensor, "M N"]:
    """The weights of a head, pooled where they are more than `most`; NaN where hidden."""
    L, S = site.shape[2:]
    if most[0] >= L and most[1] >= S:
        values = site.weights(head, sequence=sequence).float().cpu()
        seen = site.allowed(head, sequence=sequence).cpu()
        if not drawing.first_key:
            seen = seen.clone()
            seen[:, 0] = False
    else:
        pooled = site.map(head, (min(L, most[0]), min(S, most[1])), sequence=sequence)
        counts = _seen_cells(site, head, pooled, sequence)
        values = pooled.maximum.float().cpu()
        if drawing.pool == "mean":
            values = pooled.mass.float().cpu() / counts.clamp(min=1)
        if not drawing.first_key:
            values, counts = _without_first(site, head, pooled, values, counts, drawing, sequence)
        seen = counts > 0
    if drawing.scale == "row":
        largest = values.where(seen, 0.0).amax(-1, keepdim=True)
        values = values / largest.masked_fill(largest == 0, 1.0)
    return values.where(seen, torch.nan)


def scale_of(cells: list[Float[Tensor, "M N"]], site: Site, drawing: Drawing) -> Scale:
    """One scale for some heads of a site: up to the largest weight of a query that has a choice.

    A first row with a single key always has weight 1, and would leave all others dark. Of a long
    text the few strongest blocks lie beyond the end.
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


def _seen_cells(site: Site, head: int, pooled: Map, sequence: int) -> Float[Tensor, "M N"]:
    """How many cells of each block a query may see."""
    rows, cols = pooled.row_edges.tolist(), pooled.col_edges.cpu()
    counts = torch.zeros(len(rows) - 1, len(cols) - 1)
    step = max(1, _CHUNK // max(1, site.shape[3]))
    for a, (low, high) in enumerate(itertools.pairwise(rows)):
        for start in range(low, high, step):
            some = range(start, min(high, start + step))
            seen = site.allowed(head, rows=some, sequence=sequence)
            counts[a] += _per_block(seen, cols)
    return counts


def _per_block(seen: Bool[Tensor, "R S"], cols: Tensor) -> Float[Tensor, " N"]:
    sums = torch.nn.functional.pad(seen.sum(0).cumsum(0), (1, 0)).cpu()
    return (sums[cols[1:]] - sums[cols[:-1]]).float()


def _without_first(
    site: Site,
    head: int,
    pooled: Map,
    values: Tensor,
    counts: Tensor,
    drawing: Drawing,
    sequence: int,
) -> tuple[Tensor, Tensor]:
    """The first column of blocks anew, from all of its keys but the first."""
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
    ordered = values.sort().values  # torch.quantile refuses large inputs
    return float(ordered[min(len(ordered) - 1, int(q * len(ordered)))])
