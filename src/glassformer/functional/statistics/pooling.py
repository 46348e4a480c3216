"""The weight matrix pooled into a small map, tile by tile.

The map has M × N cells; cell (a, b) covers the queries from ⌊a·L/M⌋ up to ⌊(a+1)·L/M⌋ and the keys
likewise, so that sizes need not divide lengths and every weight counts once.
"""

from dataclasses import dataclass

import torch
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
        self.row_edges = _edges(extent.L, M)
        self.col_edges = _edges(extent.S, N)
        cells = (extent.B, extent.H, len(self.row_edges) - 1, len(self.col_edges) - 1)
        self.mass = torch.zeros(cells, dtype=dtype, device=device)
        self.maximum = torch.zeros(cells, dtype=dtype, device=device)
        widths = torch.tensor(self.col_edges).diff()
        self.column = torch.arange(len(widths)).repeat_interleave(widths).to(device)

    def add(self, weights: Float[Tensor, "B H R C"], tile: Tile) -> None:
        """Add one tile. Rows are reduced first, which leaves little to scatter into columns."""
        assert isinstance(tile.rows, slice)
        start, stop = tile.rows.start, tile.rows.stop
        column = self.column[tile.cols]
        for a, (low, high) in enumerate(zip(self.row_edges, self.row_edges[1:], strict=False)):
            if low >= stop or high <= start:
                continue
            rows = weights[:, :, max(low, start) - start : min(high, stop) - start]
            self.mass[:, :, a].index_add_(-1, column, rows.sum(-2))
            most = rows.amax(-2)
            self.maximum[:, :, a].scatter_reduce_(-1, column.expand_as(most), most, "amax")

    def result(self) -> Map:
        device = self.mass.device
        edges = (torch.tensor(e, device=device) for e in (self.row_edges, self.col_edges))
        return Map(self.mass, self.maximum, *edges)


def _edges(length: int, n: int) -> list[int]:
    n = max(min(n, length), 1)
    return [a * length // n for a in range(n + 1)]
