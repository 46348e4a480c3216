"""Statistics on CUDA by two Triton kernels: when they apply, and what they compute.

They support masks that are bands and rectangles, ALiBi, soft-capping, grouped heads, packed batches
and paged caches, in float32, bfloat16 and float16; otherwise `refusal` says why the streaming pass
runs instead.
"""

import math
from collections.abc import Callable
from functools import lru_cache
from typing import Any

import torch
from jaxtyping import Float, Int
from torch import Tensor

from glassformer.functional.biases import ALiBi, Bias
from glassformer.functional.cells import Extent
from glassformer.functional.checks import Scoring
from glassformer.functional.masks import And, Mask
from glassformer.functional.masks.limits import is_aligned, is_band, split_bands
from glassformer.functional.statistics.launches import (
    Operands,
    count_blocks,
    count_parts,
    find_limits,
    lse_shape,
    statistics_shape,
)
from glassformer.functional.statistics.layout import Packed
from glassformer.functional.statistics.pooling import Map
from glassformer.functional.statistics.streaming import Top
from glassformer.functional.triton_support import triton_refusal

_MOST_TOP = 64


def refusal(
    q: Tensor,
    scoring: Scoring,
    *,
    map_size: int | tuple[int, int] | None = None,
    top: int | None = None,
    query_positions: Tensor | None = None,
    within: tuple[Mask, ...] = (),
    observe: int | None = None,
    packed: Packed | None = None,
) -> str | None:
    """Why the kernels cannot compute this call; None if they can."""
    del observe
    B, _, L, S = scoring.extent
    if torch.compiler.is_compiling():
        return "the kernels are not traced into a compiled graph"
    if (why := triton_refusal(q.device)) is not None:
        return why
    if q.dtype == torch.float64:
        return "the kernels compute in float32"
    widest = 128 if q.dtype == torch.float32 else 256
    if q.shape[-1] > widest:
        return f"the kernels support heads of at most {widest} in {q.dtype}; got {q.shape[-1]}"
    if not (B and L and S):
        return "there is nothing to attend to"
    if top is not None and top > _MOST_TOP:
        return f"the kernels find at most the {_MOST_TOP} strongest keys; got top={top}"
    if query_positions is not None:
        return "the kernels need consecutive queries that end at the last key"
    if scoring.mask is not None and not is_band(scoring.mask):
        return "the kernels support only Causal, Window, Padding and Prefix, combined by &"
    if any(split_bands(mask) is None for mask in within):
        return "the kernels sum only within Causal, Window, Padding and Prefix, and two by |"
    if packed is not None and not all(is_aligned(m) for m in (scoring.mask, *within)):
        return "in packed batches the kernels support only masks without tensors and offsets"
    if scoring.bias is not None and not _is_known_bias(scoring.bias, scoring.extent, packed):
        return "the only bias that the kernels support is ALiBi, aligned bottom-right"
    M, N = _as_pair(map_size)
    if min(M, N) < 1 or max(L, S) * (min(M, L) + 1) >= 1 << 31:
        return f"the kernels count in 31 bits; got {L} queries, {S} keys and map_size={map_size}"
    return None


def measure(
    q: Float[Tensor, "B H L D"],
    k: Float[Tensor, "_ K _ D"],
    scoring: Scoring,
    *,
    lse: Float[Tensor, "B H L"] | None,
    map_size: int | tuple[int, int] | None,
    distance: bool = True,
    top: int | None = None,
    query_positions: None = None,
    within: tuple[Mask, ...] = (),
    observe: int | None = None,
    packed: Packed | None = None,
    progress: Callable[[float], None] | None = None,
) -> dict[str, Any]:
    """The fields of `AttentionStatistics`, in one pass over q kᵀ once `lse` is known.

    What lies within other masks, and what the last queries give, takes a pass over those cells.
    """
    del query_positions
    found, ranks = None, None
    if lse is None or top is not None:
        found, ranks = _scan_rows(q, k, scoring, packed, top)
    if lse is not None:
        found = lse.to(torch.float32, copy=True).contiguous()
    assert found is not None
    lse = found
    B, H, L, S = scoring.extent
    M, N = (min(n, most) for n, most in zip(_as_pair(map_size), (L, S), strict=True))

    def zeros(*sizes: int) -> Tensor:
        return torch.zeros(sizes, dtype=torch.float32, device=q.device)

    operands = Operands.of(q, k, scoring, packed)
    entropy, far, peak = per_row = zeros(3, B, H, L)
    received = zeros(B, H, S)
    cells = zeros(2, B, H, M, N) if map_size is not None else None
    sizes = (L, S, M, N)
    _launch(
        operands, lse, per_row, received, sizes, packed, peak=peak, cells=cells, distance=distance
    )
    observed = None
    if observe is not None:
        observed = zeros(B, H, S)
        _launch(operands, lse, per_row, observed, sizes, packed, ask="received", observe=observe)
    shares = []
    for mask in within:
        share = zeros(B, H, L)
        for sign, band in split_bands(mask) or ():
            both = band if scoring.mask is None else And(scoring.mask, band)
            cut = operands.limited(find_limits(scoring, both, packed, q.device))
            part = zeros(B, H, L)
            _launch(cut, lse, part, received, sizes, packed, ask="mass")
            share.add_(part, alpha=sign)
        shares.append(share)
    if progress is not None:
        progress(1.0)
    edges = (_edges(n, parts, q.device).clone() for n, parts in ((L, M), (S, N)))
    return {
        "lse": lse,
        "entropy": entropy,
        "peak": peak,
        "distance": far if distance else None,
        "received": received,
        "top": None if ranks is None or top is None else _read_ranks(ranks, lse, min(top, S)),
        "map": None if cells is None else Map(*cells, *edges),
        "within": tuple(shares),
        "observed": observed,
    }


def _launch(
    operands: Operands,
    lse: Tensor,
    per_row: Tensor,
    received: Tensor,
    sizes: tuple[int, int, int, int],
    packed: Packed | None,
    *,
    ask: str = "all",
    observe: int = 0,
    peak: Tensor | None = None,
    cells: Tensor | None = None,
    distance: bool = False,
) -> None:
    """Add to these results: first the tiles without a comparison, then the others."""
    from glassformer.functional.statistics.kernels import statistics_kernel

    q, (L, S, M, N) = operands.q, sizes
    shape = statistics_shape(q, distance)
    # A block of keys lies in one column of the map, or in one sequence. Choose the size that wastes
    # the least of the last block; starting a tile costs as much as 32 keys.
    cell = count_blocks(S, N if packed is None else packed.n_sequences)
    keys = min((16, 32, 64, shape.keys), key=lambda n: count_blocks(cell, n) * (n + 32))
    blocks = count_blocks(cell, keys) if packed is None else S // keys + packed.n_sequences
    programs = len(lse) * lse.shape[1] * N * blocks
    n_parts = count_parts(programs, count_blocks(L, shape.rows), q.device)
    peak = per_row if peak is None else peak
    mass, maximum = (peak, peak) if cells is None else cells
    launch: Any = statistics_kernel[(programs * n_parts,)]
    with torch.cuda.device_of(q):
        for careful, cut in ((False, shape), (True, shape._replace(stages=1, registers=None))):
            launch(
                q,
                operands.k,
                lse,
                per_row,
                peak.view(torch.int32),
                received,
                mass,
                maximum.view(torch.int32),
                *operands.numbers,
                L,
                S,
                M,
                N,
                blocks,
                observe,
                n_parts,
                *operands.factors,
                **operands.constants,
                ROWS=shape.rows,
                KEYS=keys,
                CELLS="none" if cells is None else _cells_of_a_tile(L, M, shape.rows),
                DISTANCE=distance,
                RAGGED=packed is None and S % (N * keys) != 0,
                CAREFUL=careful,
                ASK=ask,
                **cut.options(q.device),
            )


def row_lse(
    q: Float[Tensor, "B H L D"],
    k: Float[Tensor, "_ K _ D"],
    scoring: Scoring,
    packed: Packed | None = None,
) -> Float[Tensor, "B H L"]:
    """The log-sum-exp of every row of scores; −∞ where nothing is allowed."""
    return _scan_rows(q, k, scoring, packed, None)[0]


def _scan_rows(
    q: Tensor, k: Tensor, scoring: Scoring, packed: Packed | None, top: int | None
) -> tuple[Float[Tensor, "B H L"], Int[Tensor, "B H L T"] | None]:
    """The log-sum-exp of every row, and the ranks of its strongest keys if asked for."""
    from glassformer.functional.statistics.lse_pass import lse_kernel

    B, H, L, S = scoring.extent
    shape = lse_shape(q, top)
    most = 0 if top is None else max(2, 1 << (top - 1).bit_length())
    n_blocks = count_blocks(L, shape.rows)
    if packed is not None:
        n_blocks = L // shape.rows + packed.n_sequences
    n_parts = count_parts(B * H * n_blocks, count_blocks(S, shape.keys), q.device)
    parts = torch.empty(n_parts, B, H, L, dtype=torch.float32, device=q.device)
    ranks = parts if top is None else parts.new_empty((*parts.shape, most), dtype=torch.int64)
    operands = Operands.of(q, k, scoring, packed)
    launch: Any = lse_kernel[(B * H * n_blocks * n_parts,)]
    with torch.cuda.device_of(q):
        launch(
            operands.q,
            operands.k,
            parts,
            ranks,
            *operands.numbers,
            L,
            S,
            n_blocks,
            n_parts,
            *operands.factors,
            **operands.constants,
            ROWS=shape.rows,
            KEYS=shape.keys,
            TOP=most,
            **shape.options(q.device),
        )
    lse = parts[0] if n_parts == 1 else parts.logsumexp(0)
    return lse, None if top is None else ranks.movedim(0, -2).flatten(-2)


def _read_ranks(ranks: Int[Tensor, "B H L T"], lse: Float[Tensor, "B H L"], top: int) -> Top:
    """The keys and weights that the kernel has written as whole numbers."""
    ranks = ranks.topk(top, dim=-1).values
    ordered = (ranks >> 32).to(torch.int32)
    scores = (ordered ^ ((ordered >> 31) & 0x7FFFFFFF)).view(torch.float32) * math.log(2)
    weights = (scores - lse.masked_fill(lse.isneginf(), 0.0)[..., None]).exp()
    weights = weights.masked_fill(ranks < 128 - (1 << 63), 0.0)  # too few keys are allowed
    keys = 0x7FFFFFFF - (ranks & 0x7FFFFFFF)
    return Top(keys.masked_fill(weights == 0, -1), weights)


def _is_known_bias(bias: Bias, extent: Extent, packed: Packed | None) -> bool:
    if not isinstance(bias, ALiBi) or isinstance(bias.offset, Tensor):
        return False
    return bias.offset is None or (packed is None and bias.offset == extent.S - extent.L)


def _cells_of_a_tile(L: int, M: int, rows: int) -> str:
    if not L % (M * rows):
        return "one"
    return "two" if rows <= L // M else "many"


def _as_pair(map_size: int | tuple[int, int] | None) -> tuple[int, int]:
    if map_size is None:
        return 1, 1
    return (map_size, map_size) if isinstance(map_size, int) else map_size


# Cached: copying numbers to a GPU waits for its queued work.
@lru_cache(maxsize=256)
def _edges(length: int, n: int, device: torch.device) -> Int[Tensor, " n+1"]:
    return torch.tensor([a * length // n for a in range(n + 1)], device=device)
