"""The attention matrix tile by tile: its scores, and a plan within a memory budget.

No function here, nor any built on it, ever stores L × S numbers at once.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from typing import NamedTuple

import torch
from jaxtyping import Float
from torch import Tensor

from glassformer.errors import ConfigError
from glassformer.functional.cells import Blocks, Extent, Tile
from glassformer.functional.checks import Scoring
from glassformer.functional.masks import Mask

MIB = 1 << 20
_COPIES = 6  # scores, their exponentials, the mask, and temporaries of matrix products
_LEAST_ROWS = 16  # below this, full-width tiles read all keys for too little work
_MOST_ROWS = 1024
_FINE = 256  # rows and columns: how closely tiles follow a mask to save work
_CELLS_PER_START = 40_000  # measured: a tile costs about 0.1 ms before its first cell
_budget: ContextVar[int] = ContextVar("memory_budget", default=64 * MIB)


@contextmanager
def memory_budget(n_bytes: int) -> Iterator[None]:
    """Limit the memory of tiles, beyond inputs and results; 64 MiB by default.

    >>> with memory_budget(8 * MIB):
    ...     plan = Plan.of(Extent(1, 1, 4096, 4096), None, torch.device("cpu"))
    >>> plan.rows < 4096
    True
    """
    if n_bytes < 1:
        raise ConfigError(f"memory_budget must be at least 1 byte; got {n_bytes}.")
    token = _budget.set(n_bytes)
    try:
        yield
    finally:
        _budget.reset(token)


def current_budget() -> int:
    """The bytes that `memory_budget` allows here."""
    return _budget.get()


def working_dtype(dtype: torch.dtype) -> torch.dtype:
    """The dtype of scores and sums: float32 or better."""
    return torch.promote_types(dtype, torch.float32)


def tile_scores(
    q: Float[Tensor, "B H L D"], k: Float[Tensor, "B K S D"], scoring: Scoring, tile: Tile
) -> Float[Tensor, "B H R C"]:
    """The scores of one tile: scaled, soft-capped, biased, and −∞ where masked."""
    dtype = working_dtype(q.dtype)
    q_rows = split_groups(q, k.shape[1])[:, :, :, tile.rows].to(dtype) * scoring.scale  # B K G R D
    k_cols = k[:, :, tile.cols].to(dtype)
    scores = q_rows.flatten(2, 3) @ k_cols.transpose(-1, -2)  # B K G·R C
    scores = scores.unflatten(2, q_rows.shape[2:4]).flatten(1, 2)  # B H R C
    if scoring.softcap is not None:
        scores = (
            scores.div_(scoring.softcap).tanh_() * scoring.softcap
        )  # autograd keeps the result of tanh_
    if scoring.bias is not None:
        scores = scores + scoring.bias.tile(tile)
    if scoring.mask is not None and tile.mixed:
        if tile.divided is None or not isinstance(tile.cols, slice):
            return scores.masked_fill_(~scoring.mask.tile(tile), -torch.inf)
        hidden = ~scoring.mask.tile(tile._replace(cols=tile.divided))
        start, stop = (at - tile.cols.start for at in (tile.divided.start, tile.divided.stop))
        scores[..., start:stop].masked_fill_(hidden, -torch.inf)
    return scores


def transpose_keys(k: Float[Tensor, "B K S D"]) -> Float[Tensor, "B K S D"]:
    """The same keys in the working dtype, laid out as kᵀ, by which every tile is a product.

    Without it, some libraries of matrix products turn the keys around again for each tile.
    """
    return k.to(working_dtype(k.dtype)).transpose(-1, -2).contiguous().transpose(-1, -2)


def split_groups(x: Float[Tensor, "B H L D"], n_kv_heads: int) -> Float[Tensor, "B K G L D"]:
    """Group query heads by the key-value head they read: head h reads h // (H // K)."""
    return x.unflatten(1, (n_kv_heads, -1))


class Span(NamedTuple):
    """Columns of a row chunk: whether a mask divides them, and, if known, which of them."""

    cols: slice
    mixed: bool
    divided: slice | None = None


@dataclass(frozen=True)
class Plan:
    """How the matrix is divided into tiles: chunks of rows, each with its relevant columns."""

    extent: Extent
    device: torch.device
    rows: int
    spans: list[list["Span"]]  # for each row chunk: its columns

    @classmethod
    def of(
        cls,
        extent: Extent,
        mask: Mask | None,
        device: torch.device,
        *,
        wide: bool = False,
        most_rows: int | None = None,
    ) -> "Plan":
        """Tiles within the memory budget: nearly square, or one per row chunk if that fits."""
        rows, cols = _tile_shape(extent, wide)
        wide = wide and cols == extent.S
        rows = rows if most_rows is None else min(rows, most_rows)
        if mask is None or not (extent.B and extent.L and extent.S):
            starts = range(0, extent.S, cols)
            spans = [Span(slice(j, min(j + cols, extent.S)), False) for j in starts]
            return cls(extent, device, rows, [spans] * -(-extent.L // rows))
        if wide:  # one tile from the first relevant block of columns to the last
            spans = _spans(mask, Blocks(extent.L, extent.S, rows, min(cols, _FINE), device))
            return cls(extent, device, rows, [_merge_spans(row) for row in spans])
        sizes = {(rows, cols), (min(rows, _FINE), min(cols, _FINE))}
        plans = (
            cls(extent, device, r, _spans(mask, Blocks(extent.L, extent.S, r, c, device)))
            for r, c in sorted(sizes)
        )
        return min(plans, key=lambda plan: plan.cost)

    @property
    def cost(self) -> float:
        """The cells to compute, plus the overhead of each tile in cells."""
        n_tiles = sum(len(row) for row in self.spans)
        heads = self.extent.B * self.extent.H
        return self.share * self.extent.L * self.extent.S + n_tiles * _CELLS_PER_START / heads

    @property
    def share(self) -> float:
        """The share of the matrix that the tiles cover."""
        covered = sum(s.cols.stop - s.cols.start for row in self.spans for s in row)
        return covered / max(len(self.spans) * self.extent.S, 1)

    def chunks(self) -> Iterator[tuple[slice, list[Tile]]]:
        """Every chunk of rows with its tiles, left to right; no tiles if nothing is allowed."""
        for i, spans in enumerate(self.spans):
            rows = slice(i * self.rows, min((i + 1) * self.rows, self.extent.L))
            yield (
                rows,
                [Tile(self.extent, rows, s.cols, self.device, s.mixed, s.divided) for s in spans],
            )


def _spans(mask: Mask, blocks: Blocks) -> list[list[Span]]:
    possible, certain = blocks.spread(mask.bounds(blocks))
    live, full = possible.any(0).any(0).tolist(), certain.all(0).all(0).tolist()
    starts = range(0, blocks.S, blocks.cols)
    ends = [slice(start, min(start + blocks.cols, blocks.S)) for start in starts]
    return [
        [Span(cols, not f) for cols, l, f in zip(ends, live_row, full_row, strict=True) if l]
        for live_row, full_row in zip(live, full, strict=True)
    ]


def _merge_spans(spans: list[Span]) -> list[Span]:
    if not spans:
        return []
    first, last = spans[0].cols.start, spans[-1].cols.stop
    whole = slice(first, last)
    if sum(s.cols.stop - s.cols.start for s in spans) < last - first:  # holes
        return [Span(whole, True)]
    mixed = [s.cols for s in spans if s.mixed]
    if not mixed:
        return [Span(whole, False)]
    return [Span(whole, True, slice(mixed[0].start, mixed[-1].stop))]


def _tile_shape(extent: Extent, wide: bool) -> tuple[int, int]:
    cells = max(_budget.get() // (4 * _COPIES * max(extent.B * extent.H, 1)), 1)
    if wide and cells // max(extent.S, 1) >= _LEAST_ROWS:
        return _clamp(cells // max(extent.S, 1), extent.L), max(extent.S, 1)
    rows = _clamp(int(cells**0.5), min(extent.L, _MOST_ROWS))
    return rows, _clamp(cells // rows, extent.S)


def _clamp(n: int, most: int) -> int:
    return max(min(n, most), 1)
