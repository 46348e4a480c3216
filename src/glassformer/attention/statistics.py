"""What attention does, without its matrix: exact statistics of q and k, in linear memory.

For every chunk of queries the scores are formed once where a full-width tile fits the memory
budget; beyond that twice, first for `lse`, then for the weights exp(score − lse).
"""

from collections.abc import Callable
from dataclasses import dataclass

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from glassformer.attention.biases import Bias
from glassformer.attention.cells import Indices, Tile, as_indices
from glassformer.attention.checks import Scoring, check_scoring
from glassformer.attention.masks import Mask
from glassformer.attention.pooling import Map, MapSums
from glassformer.attention.tiles import Plan, tile_scores, working_dtype
from glassformer.errors import ConfigError, ShapeError


@dataclass(frozen=True)
class Top:
    """The keys each query attends to most, strongest first; −1 and 0 where too few are allowed."""

    indices: Int[Tensor, "*where L T"]
    weights: Float[Tensor, "*where L T"]


@dataclass(frozen=True)
class AttentionStatistics:
    """What one attention site does, query by query and key by key; zeros in an empty row."""

    lse: Float[Tensor, "B H L"]  # log Σ exp(score); −∞ where nothing is allowed
    entropy: Float[Tensor, "B H L"]  # −Σ weight · log weight, in nats: 0 sharp, log S even
    peak: Float[Tensor, "B H L"]  # the largest weight
    distance: Float[Tensor, "B H L"]  # Σ weight · |where the query stands − key|
    received: Float[Tensor, "B H S"]  # Σ over queries: the mass each key gets
    top: Top | None
    map: Map | None


def attention_statistics(
    q: Float[Tensor, "B H L D"],
    k: Float[Tensor, "B K S D"],
    *,
    mask: Mask | Bool[Tensor, "..."] | None = None,
    bias: Bias | Float[Tensor, "..."] | None = None,
    scale: float | None = None,
    softcap: float | None = None,
    map_size: int | tuple[int, int] | None = None,
    top: int | None = None,
    lse: Float[Tensor, "B H L"] | None = None,
    progress: Callable[[float], None] | None = None,
) -> AttentionStatistics:
    """Statistics of softmax(q kᵀ · scale + bias), exact, and never more than tiles of it in memory.

    `map_size` asks for a pooled map of that many rows and columns, `top` for the strongest keys of
    each query. `lse`, if known, saves a pass. `progress` is called with the share done, up to 1.

    >>> q = k = torch.zeros(1, 1, 4, 8)
    >>> attention_statistics(q, k).received.squeeze()
    tensor([1., 1., 1., 1.])
    """
    site = check_scoring(q, k, mask=mask, bias=bias, scale=scale, softcap=softcap)
    B, H, L, S = site.extent
    if top is not None and top < 1:
        raise ConfigError(f"top must be at least 1; got {top}. Leave it out for none.")
    if lse is not None:
        _check_lse(lse, site)
    dtype = working_dtype(q.dtype)
    maps = None if map_size is None else MapSums(site.extent, map_size, dtype, q.device)
    per_row = {n: torch.zeros(B, H, L, dtype=dtype, device=q.device) for n in _PER_ROW}
    received = torch.zeros(B, H, S, dtype=dtype, device=q.device)
    strongest = None if top is None else _Strongest(min(top, S), (B, H, L), dtype, q.device)

    plan = Plan.of(site.extent, site.mask, q.device, wide=True)
    with torch.no_grad():
        for rows, tiles in plan.chunks():
            kept = tile_scores(q, k, site, tiles[0]) if len(tiles) == 1 else None
            known = _row_lse(q, k, site, tiles, rows, kept) if lse is None else lse[:, :, rows]
            per_row["lse"][:, :, rows] = known
            finite = known.to(dtype).masked_fill(known.isneginf(), 0.0)[..., None]
            for tile in tiles:
                scores = tile_scores(q, k, site, tile) if kept is None else kept
                log_weights = scores.sub_(finite)
                weights = log_weights.exp()
                queries, keys = tile.indices()
                away = (keys.to(dtype) - (queries + (S - L)).to(dtype)[:, None]).abs_()
                # A weight of 0 has logarithm −∞; 0 · −∞ has no value, 0 · −1000 is 0.
                surprise = log_weights.clamp_(min=-1000.0).mul_(weights)
                per_row["entropy"][:, :, rows] -= surprise.sum(-1)
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
    return AttentionStatistics(
        **per_row,
        received=received,
        top=None if strongest is None else strongest.result(),
        map=None if maps is None else maps.result(),
    )


def attention_lse(
    q: Float[Tensor, "B H L D"],
    k: Float[Tensor, "B K S D"],
    *,
    mask: Mask | Bool[Tensor, "..."] | None = None,
    bias: Bias | Float[Tensor, "..."] | None = None,
    scale: float | None = None,
    softcap: float | None = None,
) -> Float[Tensor, "B H L"]:
    """The log-sum-exp of every row of scores: all that is needed to get exact weights anywhere."""
    site = check_scoring(q, k, mask=mask, bias=bias, scale=scale, softcap=softcap)
    lse = torch.empty(site.extent[:3], dtype=working_dtype(q.dtype), device=q.device)
    plan = Plan.of(site.extent, site.mask, q.device)
    with torch.no_grad():
        for rows, tiles in plan.chunks():
            lse[:, :, rows] = _row_lse(q, k, site, tiles, rows, None)
    return lse


def attention_tile(
    q: Float[Tensor, "B H L D"],
    k: Float[Tensor, "B K S D"],
    lse: Float[Tensor, "B H L"],
    rows: Indices,
    cols: Indices,
    *,
    mask: Mask | Bool[Tensor, "..."] | None = None,
    bias: Bias | Float[Tensor, "..."] | None = None,
    scale: float | None = None,
    softcap: float | None = None,
) -> Float[Tensor, "B H R C"]:
    """The exact weights of a rectangle of the matrix: exp(score − lse) for these cells alone.

    >>> q = k = torch.eye(2).view(1, 1, 2, 2)
    >>> attention_tile(q, k, attention_lse(q, k, scale=1.0), [1], slice(0, 2), scale=1.0).squeeze()
    tensor([0.2689, 0.7311])
    """
    site = check_scoring(q, k, mask=mask, bias=bias, scale=scale, softcap=softcap)
    _check_lse(lse, site)
    queries = as_indices(rows, site.extent.L, "rows", q.device)
    keys = as_indices(cols, site.extent.S, "cols", q.device)
    with torch.no_grad():
        scores = tile_scores(q, k, site, Tile(site.extent, queries, keys, q.device))
        known = lse[:, :, queries, None].to(scores.dtype)
        return scores.sub_(known.masked_fill(known.isneginf(), 0.0)).exp_()


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


def _row_lse(
    q: Tensor, k: Tensor, site: Scoring, tiles: list[Tile], rows: slice, kept: Tensor | None
) -> Tensor:
    if kept is not None:
        return kept.logsumexp(-1)
    shape = (*site.extent[:2], rows.stop - rows.start)
    lse = torch.full(shape, -torch.inf, dtype=working_dtype(q.dtype), device=q.device)
    for tile in tiles:
        lse = torch.logaddexp(lse, tile_scores(q, k, site, tile).logsumexp(-1))
    return lse


def _check_lse(lse: Tensor, site: Scoring) -> None:
    if tuple(lse.shape) != site.extent[:3]:
        raise ShapeError(
            f"lse must be (B, H, L) = {site.extent[:3]}; got {tuple(lse.shape)}. "
            "It comes from attention_lse(q, k, ...) or attention_statistics(q, k, ...).lse."
        )
