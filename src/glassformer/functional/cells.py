"""Coordinates in the attention matrix: cells for formulas, blocks for skipping work.

L queries            query i has the position of key S − L + i: the last
  ┌ ─ ─ ─ ┬──────┐   query and the last key are aligned ("bottom-right"),
          │ ╲    │   so that new queries continue the keys of a cache
  └ ─ ─ ─ ┴───╲──┘
        S keys
"""

from collections.abc import Sequence
from typing import Any, NamedTuple

import torch
from jaxtyping import Bool, Int
from torch import Tensor

from glassformer.errors import ShapeError

Indices = slice | range | Sequence[int] | Int[Tensor, " n"]


class Extent(NamedTuple):
    """The size of the attention matrix: batch, query heads, queries, keys."""

    B: int
    H: int
    L: int
    S: int


class Cells(NamedTuple):
    """Coordinates of cells as broadcastable integer tensors; masks are functions of them."""

    b: Tensor
    h: Tensor
    q: Tensor
    k: Tensor
    L: int | Tensor
    S: int | Tensor

    def query_positions(self, offset: int | Tensor | None) -> Tensor:
        """The key position of each query: bottom-right, or by an offset (also one per sequence)."""
        if offset is None:
            return self.q + (self.S - self.L)
        if isinstance(offset, Tensor) and offset.ndim == 1:
            return self.q + offset[self.b]
        return self.q + offset


class Tile(NamedTuple):
    """A rectangle of the attention matrix: its rows and columns, as slices or index tensors."""

    extent: Extent
    rows: slice | Tensor
    cols: slice | Tensor
    device: torch.device
    mixed: bool = True  # False: a mask is known to allow every cell
    divided: slice | None = None  # if known: outside of these columns it allows every cell

    @classmethod
    def whole(cls, extent: Extent, device: torch.device) -> "Tile":
        return cls(extent, slice(0, extent.L), slice(0, extent.S), device)

    def indices(self) -> tuple[Tensor, Tensor]:
        """The rows and the columns as index tensors."""
        rows, cols = (
            torch.arange(which.start, which.stop, device=self.device)
            if isinstance(which, slice)
            else which
            for which in (self.rows, self.cols)
        )
        return rows, cols

    def cells(self) -> Cells:
        """The cells of the rectangle, for every batch row and head."""
        rows, cols = self.indices()
        return Cells(
            b=torch.arange(self.extent.B, device=self.device).view(-1, 1, 1, 1),
            h=torch.arange(self.extent.H, device=self.device).view(-1, 1, 1),
            q=rows.view(-1, 1),
            k=cols,
            L=self.extent.L,
            S=self.extent.S,
        )


def as_indices(which: Indices, length: int, name: str, device: torch.device) -> Int[Tensor, " n"]:
    """A slice, range, list or tensor of indices in 0 … length−1, as an index tensor."""
    if isinstance(which, slice):
        return torch.arange(*which.indices(length), device=device)
    index = torch.as_tensor(which if isinstance(which, Tensor) else list(which), device=device)
    if index.numel() == 0:
        return index.long()
    if index.ndim != 1 or index.dtype.is_floating_point or index.dtype == torch.bool:
        raise ShapeError(
            f"{name} must be a slice or a flat list of integers; got "
            f"{index.dtype} of shape {tuple(index.shape)}. Use e.g. {name}=slice(0, 8)."
        )
    low, high = int(index.min()), int(index.max())
    if low < 0 or high >= length:
        raise ShapeError(
            f"{name} must lie in 0 … {length - 1}; got values from {low} to {high}. "
            f"Use {name}=slice(None) for all {length}."
        )
    return index.long()


def as_4d(tensor: Tensor) -> Tensor:
    """A matrix (L, S) as (1, 1, L, S); a tensor of rank 4 unchanged."""
    return tensor if tensor.ndim == 4 else tensor[None, None]


def pick_cells(tensor: Tensor, cells: Cells) -> Tensor:
    """The entries of a (B, H, L, S) tensor at some cells; any dimension may be 1."""
    places = zip(tensor.shape, (cells.b, cells.h, cells.q, cells.k), strict=True)
    return tensor[tuple(place if n > 1 else place * 0 for n, place in places)]


def cut_tile(tensor: Tensor, tile: Tile) -> Tensor:
    """The part of a (B, H, L, S) tensor inside a tile; any dimension may be 1."""
    if tensor.shape[2] > 1:
        tensor = tensor[:, :, tile.rows]
    if tensor.shape[3] > 1:
        tensor = tensor[:, :, :, tile.cols]
    return tensor


class Bounds(NamedTuple):
    """Bounds on a mask for each block, each (B or 1, H or 1, n_rows, n_cols)."""

    possible: Bool[Tensor, "..."]  # False: no cell of the block is allowed
    certain: Bool[Tensor, "..."]  # True: every cell of the block is allowed


class Blocks(NamedTuple):
    """The attention matrix in blocks of rows × cols cells; the last ones may be smaller."""

    L: int
    S: int
    rows: int
    cols: int
    device: torch.device

    def q_ends(self) -> tuple[Any, Any]:
        """The first and the last query of each block, (n_rows, 1)."""
        first = torch.arange(0, self.L, self.rows, device=self.device).view(-1, 1)
        return first, (first + self.rows - 1).clamp(max=self.L - 1)

    def k_ends(self) -> tuple[Any, Any]:
        """The first and the last key of each block, (n_cols,)."""
        first = torch.arange(0, self.S, self.cols, device=self.device)
        return first, (first + self.cols - 1).clamp(max=self.S - 1)

    def spread(self, bounds: Bounds) -> Bounds:
        """Bounds expanded to four dimensions: (B or 1, H or 1, n_rows, n_cols)."""
        grid = -(-self.L // self.rows), -(-self.S // self.cols)
        each = (b.view((1,) * (4 - b.ndim) + b.shape) for b in bounds)
        return Bounds(*(b.expand(*b.shape[:2], *grid) for b in each))

    def q_offset(self, offset: int | Tensor | None) -> int | Tensor:
        """The offset from a query's index to its key position, shaped for (B, H, rows, cols)."""
        if offset is None:
            return self.S - self.L
        if isinstance(offset, Tensor):
            return offset.view(-1, 1, 1, 1)
        return offset


class Whole(Blocks):
    """The attention matrix as one block with plain numbers as ends: for masks without tensors."""

    @classmethod
    def of(cls, extent: Extent) -> "Whole":
        return cls(extent.L, extent.S, extent.L, extent.S, torch.device("cpu"))

    def q_ends(self) -> tuple[Any, Any]:
        return 0, self.L - 1

    def k_ends(self) -> tuple[Any, Any]:
        return 0, self.S - 1


def block_ends(values: Tensor, size: int) -> tuple[Tensor, Tensor]:
    """The smallest and the largest value in each block of `size` along the last dimension."""
    missing = -values.shape[-1] % size
    if missing:
        last = values[..., -1:].expand(*values.shape[:-1], missing)
        values = torch.cat([values, last], dim=-1)
    blocks = values.unflatten(-1, (-1, size))
    return blocks.amin(-1), blocks.amax(-1)
