"""The weights of one head at every zoom level: exact, and never as a whole matrix.

Level 0 is the matrix itself, level z its blocks of 2^z × 2^z cells. One pass over the rows, band by
band, keeps what is linear in the length (lse, the largest weight of each row …) and the blocks of a
middle level, at most four million of them. With that, a tile of a finer level is computed from its
own cells, exp(score − lse), and one of a coarser level is pooled from the blocks.
"""

from collections.abc import Callable
from typing import Literal, NamedTuple

import torch
from jaxtyping import Bool, Float
from torch import Tensor

from glassformer.analysis.head_tiles import Exponentials, HeadTiles, Piece
from glassformer.analysis.pooled_cells import PooledCells, pool_rows
from glassformer.functional.tiles import working_dtype
from glassformer.tracing import Site

Pool = Literal["max", "mean"]
ProgressCallback = Callable[[float], None]

TILE = 256  # blocks along the side of a tile
_MOST_BLOCKS = 1 << 22  # kept of the middle level
_SATURATED = 0.02  # of all rows: those that may reach the brightest colour


class _Work(NamedTuple):
    """How much is computed together: what fits a cache, or what keeps a GPU busy."""

    band: int  # cells of a band of rows
    chunk: int  # columns
    kept: int  # scores of a band that are kept; more are computed twice


_ON_CPU = _Work(band=1 << 22, chunk=1 << 12, kept=1 << 24)
_ON_GPU = _Work(band=1 << 27, chunk=1 << 16, kept=1 << 28)


class PooledTile(NamedTuple):
    """Blocks of one level: their values, −1 where nothing is visible."""

    values: Float[Tensor, "R C"]
    row_tops: Float[Tensor, " R"]  # the largest value of each whole line at this level


class Pyramid:
    """One head of one sequence of a site, at every level; rows are surveyed when first needed."""

    def __init__(self, site: Site, head: int, sequence: int = 0) -> None:
        site._check(head, sequence)
        L, S = self.L, self.S = site.shape[2:]
        self.top_level = _count_halvings(max(L, S), TILE)
        self.middle = 0
        while _blocks(L, self.middle) * _blocks(S, self.middle) > _MOST_BLOCKS:
            self.middle += 1
        step = 1 << self.middle
        self.work = _ON_GPU if site.q.is_cuda else _ON_CPU
        band = min(max(self.work.band // max(S, 1), 16), 1024)
        self.tiles = HeadTiles(
            site, head, sequence, band=-(-band // step) * step, chunk=max(self.work.chunk, step)
        )
        like = torch.empty(0, dtype=working_dtype(site.q.dtype), device=site.q.device)
        self.n_bands = -(-L // self.tiles.band)
        self.is_surveyed = [False] * self.n_bands
        self.lse = like.new_zeros(L)
        self.seen = like.new_zeros(L)  # how many keys each query may see
        self.peaks = like.new_zeros(2, L)  # the largest weight, without the first key and with it
        self.firsts = PooledCells.zeros(L, 1, like)  # the first key, which can be left out
        self.blocks = PooledCells.zeros(_blocks(L, self.middle), _blocks(S, self.middle), like)
        self.mean_tops = {
            level: like.new_zeros(2, _blocks(L, level)) for level in range(1, self.middle)
        }
        self._coarse_tops: dict[tuple[int, int], Tensor] = {}

    @property
    def n_surveyed(self) -> int:
        """The number of rows from the first on that are surveyed."""
        bands = next((i for i, done in enumerate(self.is_surveyed) if not done), self.n_bands)
        return min(bands * self.tiles.band, self.L)

    @property
    def share(self) -> float:
        """The share of the work of a survey that is done."""
        costs = self.tiles.costs
        done = sum(cost for cost, is_done in zip(costs, self.is_surveyed, strict=True) if is_done)
        return done / max(sum(costs), 1)

    def survey(self, rows: slice, progress: ProgressCallback = lambda _: None) -> None:
        """Compute all that is kept of these rows, unless it is known; the one long computation."""
        band = self.tiles.band
        missing = [
            i for i in range(rows.start // band, -(-rows.stop // band)) if not self.is_surveyed[i]
        ]
        with torch.no_grad():
            for n, i in enumerate(missing):
                part = slice(i * band, min((i + 1) * band, self.L))
                self._survey_band(part, lambda share, n=n: progress((n + share) / len(missing)))
                self.is_surveyed[i] = True

    def tile(
        self,
        level: int,
        row: int,
        col: int,
        pool: Pool = "max",
        *,
        has_first: bool = True,
        progress: ProgressCallback = lambda _: None,
    ) -> PooledTile:
        """The tile in this row and column of tiles of a level."""
        rows, cols = (
            slice(min(n * TILE, most), min((n + 1) * TILE, most))
            for n, most in ((row, _blocks(self.L, level)), (col, _blocks(self.S, level)))
        )
        return self.lines(level, rows, cols, pool, has_first=has_first, progress=progress)

    def lines(
        self,
        level: int,
        rows: slice,
        cols: slice,
        pool: Pool,
        *,
        has_first: bool = True,
        progress: ProgressCallback = lambda _: None,
    ) -> PooledTile:
        """Blocks of a level, by the rows and columns of its blocks."""
        queries = slice(rows.start << level, min(rows.stop << level, self.L))
        keys = slice(cols.start << level, min(cols.stop << level, self.S))
        self.survey(queries, progress)
        with torch.no_grad():
            if level >= self.middle:
                cells = self._pool_blocks(level, rows, cols)
            else:
                cells = self._pool_cells(level, queries, keys, progress)
            if has_first and cols.start == 0 and cells.seen.numel():
                cells = cells.with_column(self._pool_firsts(level, queries))
            tops = self.row_tops(level, pool, has_first)[rows]
            return PooledTile(cells.values(pool), tops)

    def row(self, query: int) -> tuple[Float[Tensor, " S"], Bool[Tensor, " S"]]:
        """The scores of one query, and which keys it may see."""
        scores = torch.full((self.S,), -torch.inf, dtype=self.lse.dtype, device=self.lse.device)
        visible = torch.zeros_like(scores, dtype=torch.bool)
        for piece in self.tiles.pieces(slice(query, query + 1), slice(0, self.S)):
            found = self.tiles.scores(piece)
            seen = self.tiles.visible(found, piece)
            scores[piece.cols] = found[0]
            visible[piece.cols] = True if seen is None else seen[0]
        return scores, visible

    def strongest(
        self, level: int, row: int, col: int, *, has_first: bool = True
    ) -> tuple[int, int]:
        """The query and the key of the largest weight in one block of a level."""
        rows, cols = (
            slice(n << level, min((n + 1) << level, most))
            for n, most in ((row, self.L), (col, self.S))
        )
        self.survey(rows)
        best, found = -1.0, (rows.start, cols.start)
        with torch.no_grad():
            for piece in self.tiles.pieces(rows, cols):
                cells = self._weigh(piece, self.tiles.exponentials(piece))
                if piece.cols.start == 0 and not has_first:
                    _leave_out_first(cells)
                weights = cells.maximum.masked_fill(cells.seen == 0, -1.0)
                place = int(weights.argmax())
                if float(weights.flatten()[place]) > best:
                    best = float(weights.flatten()[place])
                    down, right = divmod(place, weights.shape[1])
                    found = (piece.rows.start + down, piece.cols.start + right)
        return found

    def row_tops(self, level: int, pool: Pool, has_first: bool) -> Float[Tensor, " R"]:
        """The largest value of each line of a level, 0 where it is not surveyed yet."""
        which = int(has_first)
        if pool == "max" or level == 0:
            return pool_rows(self.peaks[which], level)
        if level < self.middle:
            return self.mean_tops[level][which]
        if (level, which) in self._coarse_tops:
            return self._coarse_tops[level, which]
        cells = self.blocks.pool(level - self.middle)
        if has_first:
            cells = cells.with_column(self._pool_firsts(level, slice(0, self.L)))
        tops = cells.mean.amax(-1)
        if all(self.is_surveyed):
            self._coarse_tops[level, which] = tops
        return tops

    def top(self, level: int, pool: Pool, has_first: bool) -> float:
        """The value of the brightest colour where all lines share a scale.

        One line in fifty may exceed it, so that a few large weights do not darken all others.
        Queries that see one key have no choice and do not count. Maxima have one scale at all
        levels: zooming does not change what a colour means.
        """
        level = 0 if pool == "max" else level
        tops = self.row_tops(level, pool, has_first)
        forced = pool_rows((self.seen == 1).to(tops.dtype), level) > 0
        free = tops[~forced & (tops > 0)]
        free = tops[tops > 0] if not len(free) else free
        if not len(free):
            return 0.0
        rank = len(free) - int(_SATURATED * len(free))
        return float(free.kthvalue(rank).values)

    def _survey_band(self, rows: slice, progress: ProgressCallback) -> None:
        pieces = list(self.tiles.pieces(rows, slice(0, self.S)))
        n = rows.stop - rows.start
        is_kept = (
            sum(n * (piece.cols.stop - piece.cols.start) for piece in pieces) <= self.work.kept
        )
        kept: list[Exponentials] = []
        lse = torch.full_like(self.lse[rows], -torch.inf)
        for i, piece in enumerate(pieces):
            progress(0.5 * i / len(pieces))
            found = self.tiles.exponentials(piece)
            lse = torch.logaddexp(lse, found.lse)
            if is_kept:
                kept.append(found)
        self.lse[rows] = lse
        self.seen[rows] = 0.0
        self.peaks[:, rows] = 0.0
        for i, piece in enumerate(pieces):
            progress(0.5 + 0.5 * i / len(pieces))
            found = kept[i] if is_kept else self.tiles.exponentials(piece)
            self._add_cells(piece, self._weigh(piece, found))
        self.peaks[1, rows] = torch.maximum(self.peaks[0, rows], self.firsts.maximum[rows, 0])
        progress(1.0)

    def _add_cells(self, piece: Piece, cells: PooledCells) -> None:
        """Keep what the cells of a piece add."""
        rows, m = piece.rows, self.middle
        self.seen[rows] += cells.seen.sum(-1)
        if piece.cols.start == 0:
            first = PooledCells(*(each[:, :1].clone() for each in cells))
            for kept, new in zip(self.firsts, first, strict=True):
                kept[rows] = new
            _leave_out_first(cells)
        peaks = self.peaks[0, rows]
        self.peaks[0, rows] = torch.maximum(peaks, cells.maximum.amax(-1))
        for level in range(m):
            cells = cells.halve()
            if level + 1 < m:
                lines = slice(rows.start >> (level + 1), _blocks(rows.stop, level + 1))
                found = [cells, cells]
                if piece.cols.start == 0:
                    found[1] = cells.with_column(self._pool_firsts(level + 1, rows))
                for tops, each in zip(self.mean_tops[level + 1], found, strict=True):
                    tops[lines] = torch.maximum(tops[lines], each.mean.amax(-1))
        lines = slice(rows.start >> m, _blocks(rows.stop, m))
        columns = slice(piece.cols.start >> m, _blocks(piece.cols.stop, m))
        for kept, new in zip(self.blocks, cells, strict=True):
            kept[lines, columns] = new

    def _weigh(self, piece: Piece, found: Exponentials) -> PooledCells:
        """Weights and visibility, cell by cell."""
        lse = self.lse[piece.rows, None]
        factors = (found.largest - lse.masked_fill(lse.isneginf(), 0.0)).exp()
        weights = found.values.mul_(factors)
        if found.visible is None:
            return PooledCells(weights, weights.clone(), torch.ones_like(weights))
        weights = weights.masked_fill_(~found.visible, 0.0)
        return PooledCells(weights, weights.clone(), found.visible.to(weights.dtype))

    def _pool_cells(
        self, level: int, rows: slice, cols: slice, progress: ProgressCallback
    ) -> PooledCells:
        """Blocks of a fine level, from their own cells."""
        down, across = (_blocks(part.stop - part.start, level) for part in (rows, cols))
        found = PooledCells.zeros(down, across, self.lse)
        pieces = list(self.tiles.pieces(rows, cols))
        for n, piece in enumerate(pieces):
            progress(n / len(pieces))
            cells = self._weigh(piece, self.tiles.exponentials(piece))
            if piece.cols.start == 0:
                _leave_out_first(cells)
            cells = cells.pool(level)
            top = (piece.rows.start - rows.start) >> level
            left = (piece.cols.start - cols.start) >> level
            for kept, new in zip(found, cells, strict=True):
                kept[top : top + len(new), left : left + new.shape[1]] = new
        return found

    def _pool_blocks(self, level: int, rows: slice, cols: slice) -> PooledCells:
        """Blocks of a coarse level, from those of the middle one."""
        up = level - self.middle
        parts = tuple(slice(part.start << up, part.stop << up) for part in (rows, cols))
        return PooledCells(*(each[parts] for each in self.blocks)).pool(up)

    def _pool_firsts(self, level: int, rows: slice) -> PooledCells:
        """The first key alone, pooled over rows."""
        column = PooledCells(*(each[rows] for each in self.firsts))
        for _ in range(level):
            column = column.halve()  # its second half is empty
        return column


def _leave_out_first(cells: PooledCells) -> None:
    for each in cells:
        each[:, 0] = 0.0


def _blocks(length: int, level: int) -> int:
    return (length + (1 << level) - 1) >> level


def _count_halvings(length: int, most: int) -> int:
    n = 0
    while _blocks(length, n) > most:
        n += 1
    return n
