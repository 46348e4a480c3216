"""Statistics in pure PyTorch, tile by tile: any mask, any bias, any device.

For every chunk of queries, scores are computed once if a full-width tile fits the memory budget,
otherwise twice: first for `lse`, then for the weights exp(score − lse).
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
from jaxtyping import Float, Int
from torch import Tensor

from glassformer.functional.cells import Tile
from glassformer.functional.checks import Scoring
from glassformer.functional.statistics.pooling import MapSums
from glassformer.functional.tiles import Plan, tile_scores, working_dtype


@dataclass(frozen=True)
class Top:
    """The keys each query attends to most, strongest first; −1 and 0 where too few are allowed."""

    indices: Int[Tensor, "*where L T"]
    weights: Float[Tensor, "*where L T"]


def measure(
    q: Float[Tensor, "B H L D"],
    k: Float[Tensor, "B K S D"],
    scoring: Scoring,
    *,
    lse: Float[Tensor, "B H L"] | None,
    map_size: int | tuple[int, int] | None,
    distance: bool,
    top: int | None,
    query_positions: Int[Tensor, " L"] | None,
    progress: Callable[[float], None] | None,
) -> dict[str, Any]:
    """The fields of `AttentionStatistics`."""
    B, H, L, S = scoring.extent
    dtype = working_dtype(q.dtype)
    maps = None if map_size is None else MapSums(scoring.extent, map_size, dtype, q.device)
    names = _PER_ROW if distance else _PER_ROW[:-1]
    per_row = {n: torch.zeros(B, H, L, dtype=dtype, device=q.device) for n in names}
    query_positions = (
        torch.arange(S - L, S, device=q.device) if query_positions is None else query_positions
    )
    received = torch.zeros(B, H, S, dtype=dtype, device=q.device)
    strongest = None if top is None else _Strongest(min(top, S), (B, H, L), dtype, q.device)

    plan = Plan.of(scoring.extent, scoring.mask, q.device, wide=True)
    for rows, tiles in plan.chunks():
        kept = tile_scores(q, k, scoring, tiles[0]) if len(tiles) == 1 else None
        known = _chunk_lse(q, k, scoring, tiles, rows, kept) if lse is None else lse[:, :, rows]
        per_row["lse"][:, :, rows] = known
        finite = known.to(dtype).masked_fill(known.isneginf(), 0.0)[..., None]
        for tile in tiles:
            scores = tile_scores(q, k, scoring, tile) if kept is None else kept
            log_weights = scores.sub_(finite)
            weights = log_weights.exp()
            # A weight of 0 has logarithm −∞, and 0 · −∞ is NaN; 0 · −1000 is 0.
            surprise = log_weights.clamp_(min=-1000.0).mul_(weights)
            per_row["entropy"][:, :, rows] -= surprise.sum(-1)
            if distance:
                keys = tile.indices()[1].to(dtype)
                away = (keys - query_positions[rows].to(dtype)[:, None]).abs_()
                per_row["distance"][:, :, rows] += torch.linalg.vecdot(weights, away)
            peak = per_row["peak"][:, :, rows]
            per_row["peak"][:, :, rows] = torch.maximum(peak, weights.amax(-1))
            received[:, :, tile.cols] += weights.sum(-2)
            if maps is not None:
                maps.add(weights, tile)
            if strongest is not None:
                strongest.add(weights, tile)
        if progress is not None:
            progress(rows.stop / L)
    return {
        "distance": None,
        **per_row,
        "received": received,
        "top": None if strongest is None else strongest.result(),
        "map": None if maps is None else maps.result(),
    }


def row_lse(
    q: Float[Tensor, "B H L D"], k: Float[Tensor, "B K S D"], scoring: Scoring
) -> Float[Tensor, "B H L"]:
    """The log-sum-exp of every row of scores; −∞ where nothing is allowed."""
    lse = torch.empty(scoring.extent[:3], dtype=working_dtype(q.dtype), device=q.device)
    for rows, tiles in Plan.of(scoring.extent, scoring.mask, q.device).chunks():
        lse[:, :, rows] = _chunk_lse(q, k, scoring, tiles, rows, None)
    return lse


_PER_ROW = ("lse", "entropy", "peak", "distance")


class _Strongest:
    """The largest weights of each row so far."""

    def __init__(
        self, most: int, rows: tuple[int, int, int], dtype: torch.dtype, device: torch.device
    ) -> None:
        self.most = most
        self.weights = torch.zeros(*rows, most, dtype=dtype, device=device)
        self.indices = torch.full((*rows, most), -1, device=device)

    def add(self, weights: Float[Tensor, "B H R C"], tile: Tile) -> None:
        rows, (_, keys) = tile.rows, tile.indices()
        best = weights.topk(min(self.most, weights.shape[-1]), dim=-1)
        found = torch.cat([self.weights[:, :, rows], best.values], dim=-1)
        places = torch.cat([self.indices[:, :, rows], keys[best.indices]], dim=-1)
        self.weights[:, :, rows], order = found.topk(self.most, dim=-1)
        self.indices[:, :, rows] = places.gather(-1, order)

    def result(self) -> Top:
        return Top(self.indices.masked_fill(self.weights == 0, -1), self.weights)


def _chunk_lse(
    q: Tensor, k: Tensor, scoring: Scoring, tiles: list[Tile], rows: slice, kept: Tensor | None
) -> Tensor:
    if kept is not None:
        return kept.logsumexp(-1)
    shape = (*scoring.extent[:2], rows.stop - rows.start)
    lse = torch.full(shape, -torch.inf, dtype=working_dtype(q.dtype), device=q.device)
    for tile in tiles:
        lse = torch.logaddexp(lse, tile_scores(q, k, scoring, tile).logsumexp(-1))
    return lse
