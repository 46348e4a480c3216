"""The scores of one head of one sequence, rectangle by rectangle, skipping what a mask hides."""

from collections.abc import Iterator
from typing import NamedTuple

import torch
from jaxtyping import Bool, Float
from torch import Tensor

from glassformer.functional.cells import Blocks, Extent, Tile
from glassformer.functional.checks import check_scoring
from glassformer.functional.tiles import tile_scores
from glassformer.tracing import Site
from glassformer.tracing.selection import select_heads

_HIDING = -1e30  # additive masks also use the lowest finite number


class Piece(NamedTuple):
    """A rectangle of the matrix, and whether a mask hides some of its cells."""

    rows: slice
    cols: slice
    is_mixed: bool


class Exponentials(NamedTuple):
    """exp(score − the row's largest in a piece): one exponential serves lse and weights."""

    values: Float[Tensor, "R C"]
    largest: Float[Tensor, "R 1"]
    visible: Bool[Tensor, "R C"] | None  # None: all cells

    @property
    def lse(self) -> Float[Tensor, " R"]:
        """The log-sum-exp of each row of the piece; −∞ where it is masked whole."""
        return self.values.sum(-1).log() + self.largest[:, 0]


class HeadTiles:
    """One head of one sequence of a site, in bands of rows and chunks of columns."""

    def __init__(self, site: Site, head: int, sequence: int, *, band: int, chunk: int) -> None:
        B, H, L, S = site.shape
        index = site.head_numbers.index(head)
        own = index // (H // site.k.shape[1])
        self.q = site.q[sequence : sequence + 1, index : index + 1]
        self.k = site.k[sequence : sequence + 1, own : own + 1]
        self.extent = Extent(B, 1, L, S)  # masks may differ from sequence to sequence
        self.sequence, self.band, self.chunk = sequence, band, chunk
        mask, bias = (select_heads(part, (index,)) for part in (site.mask, site.bias))
        self.mask = None if mask is None else mask.fit_to(self.extent, self.q.device)
        self.bias = None if bias is None else bias.fit_to(self.extent, self.q.device)
        self._scoring = check_scoring(
            self.q, self.k, mask=None, bias=None, scale=site.scale, softcap=site.softcap
        )
        self._possible, self._certain = self._find_bounds()

    def scores(self, piece: Piece) -> Float[Tensor, "R C"]:
        """Scaled, soft-capped, biased, and −∞ where masked."""
        tile = Tile(self.extent, piece.rows, piece.cols, self.q.device, piece.is_mixed)
        scores = tile_scores(self.q, self.k, self._scoring, tile)[0, 0]
        if self.bias is not None:
            scores = scores + self._pick(self.bias.tile(tile))
        if self.mask is not None and piece.is_mixed:
            scores = scores.masked_fill(~self._pick(self.mask.tile(tile)), -torch.inf)
        return scores

    def exponentials(self, piece: Piece) -> Exponentials:
        """The exponentials of the scores of a piece."""
        scores = self.scores(piece)
        visible = self.visible(scores, piece)
        largest = scores.amax(-1, keepdim=True)
        largest = largest.masked_fill(largest.isneginf(), 0.0)
        return Exponentials(scores.sub_(largest).exp_(), largest, visible)

    @property
    def costs(self) -> list[int]:
        """For each band the number of chunks that are computed."""
        return [sum(row) for row in self._possible]

    def visible(self, scores: Float[Tensor, "R C"], piece: Piece) -> Bool[Tensor, "R C"] | None:
        """Which cells may be attended to; None: all of them."""
        if self.bias is None and (self.mask is None or not piece.is_mixed):
            return None
        return ~(scores < _HIDING)  # NaN is visible

    def pieces(self, rows: slice, cols: slice) -> Iterator[Piece]:
        """The parts of a rectangle in which anything is visible, cut at bands and chunks."""
        for top in range(rows.start // self.band, -(-rows.stop // self.band)):
            across = slice(max(rows.start, top * self.band), min(rows.stop, (top + 1) * self.band))
            for left in range(cols.start // self.chunk, -(-cols.stop // self.chunk)):
                if self._possible[top][left]:
                    down = slice(
                        max(cols.start, left * self.chunk), min(cols.stop, (left + 1) * self.chunk)
                    )
                    yield Piece(across, down, not self._certain[top][left])

    def _find_bounds(self) -> tuple[list[list[bool]], list[list[bool]]]:
        """For each band and chunk: whether any cell may be visible, and whether all are."""
        _, _, L, S = self.extent
        if self.mask is None or not (L and S):
            open_ = [[True] * -(-S // self.chunk)] * -(-L // self.band)
            return open_, open_
        blocks = Blocks(L, S, self.band, self.chunk, self.q.device)
        both = blocks.spread(self.mask.bounds(blocks))
        possible, certain = (each[min(self.sequence, len(each) - 1), 0].tolist() for each in both)
        return possible, certain

    def _pick(self, cells: Tensor) -> Tensor:
        """Of cells for every sequence, those of ours."""
        cells = cells.view((1,) * (4 - cells.ndim) + cells.shape)
        return cells[min(self.sequence, len(cells) - 1), 0]
