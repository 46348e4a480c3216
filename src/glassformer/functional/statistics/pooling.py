"""The weight matrix pooled into a small map, tile by tile.

The map has M × N cells; cell (a, b) covers the queries from ⌊a·L/M⌋ up to ⌊(a+1)·L/M⌋ and the keys
likewise, so that sizes need not divide lengths and every weight counts once.
"""

from bisect import bisect_left, bisect_right
from collections.abc import Callable
from dataclasses import dataclass
from itertools import pairwise
from typing import NamedTuple

import torch
import torch.nn.functional as F
from jaxtyping import Float, Int
from torch import Tensor

from glassformer.errors import ConfigError
from glassformer.functional.cells import Extent, Tile


@dataclass(frozen=True)
class Map:
    """The attention matrix, pooled into M × N cells."""

    mass: Float[Tensor, "*where M N"]  # Σ of the weights in each cell
    maximum: Float[Tensor, "*where M N"]  # the largest weight in each cell
    row_edges: Int[Tensor, " M+1"]  # cell a covers queries row_edges[a] … row_edges[a + 1] − 1
    col_edges: Int[Tensor, " N+1"]

    @property
    def share(self) -> Float[Tensor, "*where M N"]:
        """The mean share of a query's attention that falls on each cell: rows sum to 1."""
        return self.mass / self.row_edges.diff().clamp(min=1)[:, None]


class MapSums:
    """A map accumulated tile by tile; at most as large as requested, and as the matrix."""

    def __init__(
        self,
        extent: Extent,
        size: int | tuple[int, int],
        dtype: torch.dtype,
        device: torch.device,
    ) -> None:
        M, N = (size, size) if isinstance(size, int) else size
        if M < 1 or N < 1:
            raise ConfigError(f"map_size must be at least 1 in each direction; got {size}.")
        self.row_edges = cut_evenly(extent.L, M)
        self.col_edges = cut_evenly(extent.S, N)
        cells = (extent.B, extent.H, len(self.row_edges) - 1, len(self.col_edges) - 1)
        self.mass = torch.zeros(cells, dtype=dtype, device=device)
        self.maximum = torch.zeros(cells, dtype=dtype, device=device)

    def add(self, weights: Float[Tensor, "B H R C"], tile: Tile) -> None:
        """Add one tile. Rows are reduced first, which leaves few numbers to sort into columns."""
        assert isinstance(tile.rows, slice) and isinstance(tile.cols, slice)
        rows = _cut_edges(self.row_edges, tile.rows)
        cols = _cut_edges(self.col_edges, tile.cols)
        mass = _pool_columns(_pool_rows(weights, rows.edges, torch.sum), cols.edges, torch.sum)
        most = _pool_columns(_pool_rows(weights, rows.edges, torch.amax), cols.edges, torch.amax)
        self.mass[:, :, rows.cells, cols.cells] += mass
        maximum = self.maximum[:, :, rows.cells, cols.cells]
        torch.maximum(maximum, most, out=maximum)

    def result(self) -> Map:
        device = self.mass.device
        edges = (torch.tensor(e, device=device) for e in (self.row_edges, self.col_edges))
        return Map(self.mass, self.maximum, *edges)


def cut_evenly(length: int, n: int) -> list[int]:
    """The edges of n cells; at most as many as there are places."""
    n = max(min(n, length), 1)
    return [a * length // n for a in range(n + 1)]


class _Cut(NamedTuple):
    cells: slice  # the cells that a range touches
    edges: list[int]  # where they begin and end in it


def _cut_edges(edges: list[int], part: slice) -> _Cut:
    first = bisect_right(edges, part.start) - 1
    last = bisect_left(edges, part.stop)
    inner = (min(max(edge, part.start), part.stop) - part.start for edge in edges[first : last + 1])
    return _Cut(slice(first, last), list(inner))


def _pool_rows(weights: Tensor, edges: list[int], pool: Callable[..., Tensor]) -> Tensor:
    """(B, H, R, C) → (B, H, m, C): one row for each cell."""
    heights = {high - low for low, high in pairwise(edges)}
    if len(heights) == 1:
        return pool(weights.unflatten(2, (len(edges) - 1, -1)), dim=3)
    return torch.stack([pool(weights[:, :, a:b], dim=2) for a, b in pairwise(edges)], dim=2)


def _pool_columns(rows: Tensor, edges: list[int], pool: Callable[..., Tensor]) -> Tensor:
    """(B, H, m, C) → (B, H, m, n). Narrower cells are filled up with a column of zeros."""
    widths = {high - low for low, high in pairwise(edges)}
    if len(widths) == 1:
        return pool(rows.unflatten(3, (len(edges) - 1, -1)), dim=4)
    starts, ends = (torch.tensor(e, device=rows.device)[:, None] for e in (edges[:-1], edges[1:]))
    places = starts + torch.arange(max(widths), device=rows.device)  # n, widest
    places = places.where(places < ends, rows.shape[3])
    return pool(F.pad(rows, (0, 1))[..., places], dim=4)
