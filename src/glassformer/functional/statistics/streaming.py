"""Statistics in pure PyTorch, tile by tile: any mask, any bias, any device.

For every chunk of queries, scores are computed once if a full-width tile fits the memory budget,
otherwise twice: first for `lse`, then for the weights exp(score − lse).
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import torch
from jaxtyping import Float, Int
from torch import Tensor

from glassformer.functional.cells import Tile
from glassformer.functional.checks import Scoring
from glassformer.functional.masks import Mask
from glassformer.functional.statistics.pooling import MapSums
from glassformer.functional.tiles import Plan, tile_scores, transpose_keys, working_dtype


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
    progress: Callable[[float], None] | None,
    **asked: Any,
) -> dict[str, Any]:
    """The fields of `AttentionStatistics`, some heads at a time."""
    H, K = scoring.extent.H, k.shape[1]
    n = _heads_at_once(q, K, scoring, asked.get("within", ()))
    if n == K:
        return _measure_heads(q, k, scoring, lse=lse, progress=progress, **asked)
    parts = []
    for first in range(0, K, n):
        own = slice(first, min(first + n, K))
        heads = slice(own.start * (H // K), own.stop * (H // K))
        extent = scoring.extent._replace(H=heads.stop - heads.start)
        parts.append(
            _measure_heads(
                q[:, heads],
                k[:, own],
                scoring._replace(extent=extent),
                lse=None if lse is None else lse[:, heads],
                progress=None,
                **asked,
            )
        )
        if progress is not None:
            progress(own.stop / K)
    return {name: _join_heads([part[name] for part in parts]) for name in parts[0]}


def _measure_heads(
    q: Tensor,
    k: Tensor,
    scoring: Scoring,
    *,
    lse: Tensor | None,
    map_size: int | tuple[int, int] | None,
    distance: bool,
    top: int | None,
    query_positions: Tensor | None,
    within: tuple[Mask, ...] = (),
    observe: int | None = None,
    progress: Callable[[float], None] | None,
) -> dict[str, Any]:
    B, H, L, S = scoring.extent
    dtype = working_dtype(q.dtype)
    maps = None if map_size is None else MapSums(scoring.extent, map_size, dtype, q.device)
    names = _PER_ROW if distance else _PER_ROW[:-1]
    per_row = {n: torch.zeros(B, H, L, dtype=dtype, device=q.device) for n in names}
    query_positions = (
        torch.arange(S - L, S, device=q.device) if query_positions is None else query_positions
    )
    received = torch.zeros(B, H, S, dtype=dtype, device=q.device)
    observed = None if observe is None else torch.zeros_like(received)
    first_observed = L - min(observe or 0, L)
    shares = tuple(torch.zeros(B, H, L, dtype=dtype, device=q.device) for _ in within)
    strongest = None if top is None else _Strongest(min(top, S), (B, H, L), dtype, q.device)

    # Keys that one chunk of queries reads are not worth turning around.
    k = transpose_keys(k) if L > _ROWS else k.to(dtype)
    most_rows = _ROWS if q.device.type == "cpu" else None
    plan = Plan.of(scoring.extent, scoring.mask, q.device, wide=True, most_rows=most_rows)
    for rows, tiles in plan.chunks():
        in_row = {name: values[:, :, rows] for name, values in per_row.items()}
        known = None if lse is None else lse[:, :, rows].to(dtype)
        if known is None and len(tiles) != 1:
            known = _chunk_lse(q, k, scoring, tiles, rows)
        if known is not None:
            in_row["lse"].copy_(known)
        for tile in tiles:
            scores = tile_scores(q, k, scoring, tile)
            # exp(score − shift) / total is the weight; the largest score is as good as lse.
            shift = scores.amax(-1) if known is None else known
            log_terms = scores.sub_(shift.masked_fill(shift.isneginf(), 0.0)[..., None])
            terms = log_terms.exp()
            total = terms.sum(-1) if known is None else torch.ones_like(known)
            if known is None:
                in_row["lse"].copy_(shift + total.log())
                total.masked_fill_(total == 0, 1.0)  # nothing is allowed
            # −Σ w log w = log total − Σ term · log term / total: nothing cancels, both are ≥ 0.
            # A term of 0 has logarithm −∞, and 0 · −∞ is NaN; 0 · −1000 is 0.
            spread = log_terms.clamp_(min=-1000.0).mul_(terms).sum(-1)
            in_row["entropy"] += total.log() - spread / total
            in_row["peak"].copy_(torch.maximum(in_row["peak"], terms.amax(-1) / total))
            if distance:
                keys = tile.indices()[1].to(dtype)
                away = (keys - query_positions[rows].to(dtype)[:, None]).abs_()
                in_row["distance"] += torch.mul(terms, away, out=scores).sum(-1) / total
            share = total.reciprocal()[:, :, None]  # B H 1 R
            received[:, :, tile.cols] += (share @ terms)[:, :, 0]
            if observed is not None and rows.stop > first_observed:
                last = slice(max(first_observed - rows.start, 0), None)
                observed[:, :, tile.cols] += (share[..., last] @ terms[:, :, last])[:, :, 0]
            for mass, mask in zip(shares, within, strict=True):
                mass[:, :, rows] += terms.masked_fill(~mask.tile(tile), 0.0).sum(-1) / total
            if maps is None and strongest is None:
                continue
            weights = terms.div_(total[..., None])
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
        "within": shares,
        "observed": observed,
    }


def row_lse(
    q: Float[Tensor, "B H L D"], k: Float[Tensor, "B K S D"], scoring: Scoring
) -> Float[Tensor, "B H L"]:
    """The log-sum-exp of every row of scores; −∞ where nothing is allowed."""
    lse = torch.empty(scoring.extent[:3], dtype=working_dtype(q.dtype), device=q.device)
    k = transpose_keys(k)
    for rows, tiles in Plan.of(scoring.extent, scoring.mask, q.device).chunks():
        lse[:, :, rows] = _chunk_lse(q, k, scoring, tiles, rows)
    return lse


_PER_ROW = ("lse", "entropy", "peak", "distance")
_ROWS = 256  # on a CPU: more rows leave the cache, and follow a causal mask less closely
_CACHED = 1 << 19  # cells: a tile of this size is still in the cache when it is read again


def _heads_at_once(q: Tensor, n_kv_heads: int, scoring: Scoring, within: tuple[Mask, ...]) -> int:
    """How many key-value heads are measured together: all, unless a tile would leave the cache."""
    B, H, L, S = scoring.extent
    if q.device.type != "cpu" or scoring.bias is not None or not (B and L and S):
        return n_kv_heads
    for mask in (scoring.mask, *within):
        if mask is None:
            continue
        cell = mask.tile(Tile(scoring.extent, slice(0, 1), slice(0, 1), q.device))
        if cell.ndim > 2 and cell.shape[-3] > 1:  # each head has a mask of its own
            return n_kv_heads
    cells = B * (H // n_kv_heads) * min(L, _ROWS) * S
    return max(min(_CACHED // cells, n_kv_heads), 1)


def _join_heads(parts: list[Any]) -> Any:
    """One result from those of some heads each: tensors, or what holds tensors of all heads."""
    first = parts[0]
    if first is None:
        return None
    if isinstance(first, Tensor):
        return torch.cat(parts, dim=1)
    if isinstance(first, tuple):
        return tuple(torch.cat(same, dim=1) for same in zip(*parts, strict=True))
    if isinstance(first, Top):
        return Top(*(torch.cat([getattr(p, n) for p in parts], 1) for n in ("indices", "weights")))
    mass, maximum = (torch.cat([getattr(p, n) for p in parts], 1) for n in ("mass", "maximum"))
    return replace(first, mass=mass, maximum=maximum)


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


def _chunk_lse(q: Tensor, k: Tensor, scoring: Scoring, tiles: list[Tile], rows: slice) -> Tensor:
    shape = (*scoring.extent[:2], rows.stop - rows.start)
    lse = torch.full(shape, -torch.inf, dtype=working_dtype(q.dtype), device=q.device)
    for tile in tiles:
        lse = torch.logaddexp(lse, tile_scores(q, k, scoring, tile).logsumexp(-1))
    return lse
