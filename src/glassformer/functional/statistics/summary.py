"""Exact statistics of attention from q and k, in linear memory.

Where possible, kernels compute them in about the time of attention itself: in Triton on CUDA
(cuda.py), in C on a CPU (cpu.py). Otherwise PyTorch does, tile by tile (streaming.py).
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import torch
import torch.nn.functional as F
from jaxtyping import Bool, Float, Int
from torch import Tensor

from glassformer.errors import ConfigError, ShapeError
from glassformer.functional.autocast import without_autocast
from glassformer.functional.biases import Bias
from glassformer.functional.cells import Indices, Tile, as_indices
from glassformer.functional.checks import Scoring, check_scoring
from glassformer.functional.masks import Mask, as_mask
from glassformer.functional.statistics.layout import Packed
from glassformer.functional.statistics.measuring import measure, row_lse
from glassformer.functional.statistics.packed import measure_packed
from glassformer.functional.statistics.pooling import Map
from glassformer.functional.statistics.streaming import Top
from glassformer.functional.tiles import tile_scores


@dataclass(frozen=True)
class AttentionStatistics:
    """Statistics of one attention site per query and per key; zeros in an empty row."""

    lse: Float[Tensor, "B H L"]  # log Σ exp(score); −∞ where nothing is allowed
    entropy: Float[Tensor, "B H L"]  # −Σ weight · log weight, in nats: 0 is sharp, log S uniform
    peak: Float[Tensor, "B H L"]  # the largest weight
    distance: Float[Tensor, "B H L"] | None  # Σ weight · |query position − key|
    received: Float[Tensor, "B H S"]  # Σ over queries: the attention each key receives
    top: Top | None
    map: Map | None
    within: tuple[Float[Tensor, "B H L"], ...] = ()  # Σ weight on the cells of each mask asked for
    observed: Float[Tensor, "B H S"] | None = None  # received from the last queries alone
    sink: Float[Tensor, "B H L"] | None = None  # the weight of the head's own sink

    @property
    def largest(self) -> Float[Tensor, "B H"]:
        """The largest score of each head; −∞ where nothing is allowed. It is lse + log peak."""
        scores = self.lse + self.peak.log()
        return F.pad(scores, (1, 0), value=-torch.inf).amax(-1)  # also of no queries


def attention_statistics(
    q: Float[Tensor, "B H L D"],
    k: Float[Tensor, "_ K S D"],
    *,
    mask: Mask | Bool[Tensor, "..."] | None = None,
    bias: Bias | Float[Tensor, "..."] | None = None,
    scale: float | None = None,
    softcap: float | None = None,
    sinks: Float[Tensor, " H"] | None = None,
    packed: Packed | None = None,
    map_size: int | tuple[int, int] | None = None,
    top: int | None = None,
    within: Mask | Sequence[Mask] = (),
    observe: int | None = None,
    distance: bool = True,
    query_positions: Int[Tensor, " L"] | None = None,
    lse: Float[Tensor, "B H L"] | None = None,
    progress: Callable[[float], None] | None = None,
) -> AttentionStatistics:
    """Exact statistics of softmax(q kᵀ · scale + bias), with only tiles of it in memory.

    `map_size` adds a pooled map with that many rows and columns, `top` the strongest keys of each
    query, `within` the share of each query's attention on the cells of other masks, `observe` what
    the keys receive from that many last queries; `distance=False` is faster on a GPU.

    `sinks` are scores that take part in each head's softmax without a key; they are not part of
    `received` and `peak`, but of `lse`. `packed` lays out sequences of unequal length in one row,
    and keys in a paged cache. `query_positions` is the key position of each query (default: the
    last ones). A known `lse` saves a pass. `progress` is called with the fraction done, up to 1.

    >>> q = k = torch.zeros(1, 1, 4, 8)
    >>> attention_statistics(q, k).received.squeeze()
    tensor([1., 1., 1., 1.])
    >>> from glassformer.functional import Prefix
    >>> attention_statistics(q, k, within=Prefix(1)).within[0].squeeze()
    tensor([0.2500, 0.2500, 0.2500, 0.2500])
    """
    for name, count in (("top", top), ("observe", observe)):
        if count is not None and count < 1:
            raise ConfigError(f"{name} must be at least 1; got {count}. Leave it out for none.")
    if sinks is not None and sinks.shape != q.shape[1:2]:
        raise ShapeError(
            f"sinks must give a score for each of {q.shape[1]} heads; got shape "
            f"{tuple(sinks.shape)}."
        )
    inside = (within,) if isinstance(within, Mask | Tensor) else tuple(within)
    asked: dict[str, Any] = {"map_size": map_size, "top": top, "query_positions": query_positions}
    asked |= {"observe": observe, "distance": distance}
    options: dict[str, Any] = {"bias": bias, "scale": scale, "softcap": softcap}
    given: dict[str, Any] = {"sinks": sinks, "lse": lse, "progress": progress}
    if packed is not None:
        layout = _check_packed(packed, q, k, lse, asked)
        with torch.no_grad(), without_autocast(q):
            found = measure_packed(q, k, layout, mask, inside, options, asked, **given)
            return AttentionStatistics(**found)
    scoring = check_scoring(q, k, mask=mask, **options)
    if lse is not None:
        _check_lse(lse, scoring)
    if query_positions is not None and query_positions.shape != q.shape[2:3]:
        raise ShapeError(
            f"query_positions must give a position for each of {q.shape[2]} queries; got shape "
            f"{tuple(query_positions.shape)}. Leave it out if the queries are at the last keys."
        )
    fitting = tuple(as_mask(part).fit_to(scoring.extent, q.device) for part in inside)
    with torch.no_grad(), without_autocast(q):
        return AttentionStatistics(**measure(q, k, scoring, **asked, within=fitting, **given))


def attention_lse(
    q: Float[Tensor, "B H L D"],
    k: Float[Tensor, "B K S D"],
    *,
    mask: Mask | Bool[Tensor, "..."] | None = None,
    bias: Bias | Float[Tensor, "..."] | None = None,
    scale: float | None = None,
    softcap: float | None = None,
) -> Float[Tensor, "B H L"]:
    """The log-sum-exp of every row of scores, which gives exact weights at any cell.

    >>> q, k = torch.zeros(1, 1, 2, 4), torch.zeros(1, 1, 3, 4)
    >>> attention_lse(q, k)  # three scores of 0: log 3
    tensor([[[1.0986, 1.0986]]])
    """
    scoring = check_scoring(q, k, mask=mask, bias=bias, scale=scale, softcap=softcap)
    with torch.no_grad(), without_autocast(q):
        return row_lse(q, k, scoring)


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
    """The exact weights of a rectangle of the matrix: exp(score − lse) for these cells only.

    >>> q = k = torch.eye(2).view(1, 1, 2, 2)
    >>> attention_tile(q, k, attention_lse(q, k, scale=1.0), [1], slice(0, 2), scale=1.0).squeeze()
    tensor([0.2689, 0.7311])
    """
    scoring = check_scoring(q, k, mask=mask, bias=bias, scale=scale, softcap=softcap)
    _check_lse(lse, scoring)
    queries = as_indices(rows, scoring.extent.L, "rows", q.device)
    keys = as_indices(cols, scoring.extent.S, "cols", q.device)
    with torch.no_grad(), without_autocast(q):
        scores = tile_scores(q, k, scoring, Tile(scoring.extent, queries, keys, q.device))
        known = lse[:, :, queries, None].to(scores.dtype)
        return scores.sub_(known.masked_fill(known.isneginf(), 0.0)).exp_()


def attention_rows(
    q: Float[Tensor, "B H L D"],
    k: Float[Tensor, "B K S D"],
    rows: Indices,
    *,
    mask: Mask | Bool[Tensor, "..."] | None = None,
    bias: Bias | Float[Tensor, "..."] | None = None,
    scale: float | None = None,
    softcap: float | None = None,
) -> Float[Tensor, "B H R S"]:
    """The exact weights of whole rows, which need no lse: softmax(score) of these rows only.

    >>> q = k = torch.eye(2).view(1, 1, 2, 2)
    >>> attention_rows(q, k, [1], scale=1.0).squeeze()
    tensor([0.2689, 0.7311])
    """
    scoring = check_scoring(q, k, mask=mask, bias=bias, scale=scale, softcap=softcap)
    queries = as_indices(rows, scoring.extent.L, "rows", q.device)
    keys = slice(0, scoring.extent.S)
    with torch.no_grad(), without_autocast(q):
        scores = tile_scores(q, k, scoring, Tile(scoring.extent, queries, keys, q.device))
        if not scores.numel():
            return scores
        weights = scores.softmax(-1)
        weights[scores.amax(-1).isneginf()] = 0.0  # nothing is allowed
        return weights


def _check_packed(
    packed: Packed, q: Tensor, k: Tensor, lse: Tensor | None, asked: dict[str, Any]
) -> Packed:
    """Check what describes the whole batch; the rest is checked for each sequence."""
    for name in ("map_size", "query_positions"):
        if asked[name] is not None:
            raise ConfigError(
                f"{name} is of one sequence and cannot be used with packed. "
                "Measure the sequence alone."
            )
    heads = k if packed.block_table is None else k[:1]
    whole = check_scoring(q, heads, mask=None, bias=None, scale=None, softcap=None)
    if lse is not None:
        _check_lse(lse, whole)
    return packed.fit_to(q, k)


def _check_lse(lse: Tensor, scoring: Scoring) -> None:
    if tuple(lse.shape) != scoring.extent[:3]:
        raise ShapeError(
            f"lse must be (B, H, L) = {scoring.extent[:3]}; got {tuple(lse.shape)}. "
            "Compute it with attention_lse(q, k, ...) or attention_statistics(q, k, ...).lse."
        )
