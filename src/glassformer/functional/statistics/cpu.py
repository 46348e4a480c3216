"""Statistics on a CPU by a kernel in C: when it applies, and how it is called.

Every operation of PyTorch on a tile begins and ends with all threads waiting for each other. The
kernel waits once for each call, which is what counts where other programs use the processor, too.
"""

import ctypes
from collections.abc import Callable
from functools import cache
from typing import Any

import torch
from jaxtyping import Float, Int
from torch import Tensor

from glassformer.compilation import STATISTICS
from glassformer.functional.checks import Scoring
from glassformer.functional.graph_capture import is_readable
from glassformer.functional.masks import Mask
from glassformer.functional.masks.limits import BandSums, Limits, is_band, split_bands
from glassformer.functional.native_library import find_threads, load_library
from glassformer.functional.statistics.pooling import Map, cut_evenly
from glassformer.functional.tiles import current_budget

FEW = 1 << 18  # cells: below this, PyTorch is done before a kernel would be compiled
ROWS, STRIP = 16, 64  # of the kernel: queries at a time, and the widest strip of keys
AT_ONCE = 1 << 26  # cells between two reports of progress


def refusal(
    q: Tensor,
    scoring: Scoring,
    *,
    map_size: int | tuple[int, int] | None = None,
    top: int | None = None,
    query_positions: Tensor | None = None,
    within: tuple[Mask, ...] = (),
    observe: int | None = None,
) -> str | None:
    """Why the kernel cannot compute this call; None if it can."""
    del query_positions, observe
    B, H, L, S = scoring.extent
    if q.device.type != "cpu" or not is_readable(q):
        return "the kernel reads tensors in the memory of the CPU"
    if q.dtype == torch.float64:
        return "the kernel computes in float32"
    if B * H * L * S < FEW:
        return f"{B} × {H} × {L} × {S} is little work"
    if top is not None:
        return "the kernel does not find the strongest keys"
    if scoring.bias is not None or scoring.softcap is not None:
        return "the kernel knows no bias and no soft-capping"
    if scoring.mask is not None and not is_band(scoring.mask):
        return "the kernel supports only Causal, Window, Padding and Prefix, combined by &"
    if any(split_bands(part) is None for part in within):
        return "the kernel sums only within Causal, Window, Padding and Prefix, and two by |"
    M, N = _as_pair(map_size)
    if min(M, N) < 1:
        return f"a map must have cells; got map_size={map_size}"
    room = (S + STRIP) * (q.shape[-1] + ROWS + 2) + ROWS * q.shape[-1]
    if 4 * room * torch.get_num_threads() > current_budget():
        return "all keys of a head must fit the memory budget, once for each thread"
    return None if find_kernel() is not None else "there is no C compiler"


def measure(
    q: Float[Tensor, "B H L D"],
    k: Float[Tensor, "B K S D"],
    scoring: Scoring,
    *,
    lse: Float[Tensor, "B H L"] | None,
    map_size: int | tuple[int, int] | None,
    distance: bool,
    top: None = None,
    query_positions: Int[Tensor, " L"] | None = None,
    within: tuple[Mask, ...] = (),
    observe: int | None = None,
    progress: Callable[[float], None] | None = None,
) -> dict[str, Any]:
    """The fields of `AttentionStatistics`."""
    kernel = find_kernel()
    assert kernel is not None, "refusal says so first"
    B, H, L, S = scoring.extent
    M, N = (min(n, most) for n, most in zip(_as_pair(map_size), (L, S), strict=True))
    threads = torch.get_num_threads()
    n_parts = 1 if 2 * threads <= B * H else min(-(-2 * threads // (B * H)), -(-L // ROWS))
    positions = torch.arange(S - L, S) if query_positions is None else query_positions
    bands = BandSums.of(within, scoring.extent, q.device)
    row_edges, col_edges = (torch.tensor(cut_evenly(n, m)) for n, m in ((L, M), (S, N)))
    tensors = {
        "q": q.float().contiguous(),
        "k": k.float().contiguous(),
        "positions": positions.float().contiguous(),
        "known": None if lse is None else lse.float().contiguous(),
        "limits": Limits.of(scoring.mask, scoring.extent).tensor(B, q.device).contiguous(),
        # A row without keys is not visited, but may have a sink.
        "lse": torch.full((B, H, L), -torch.inf)
        if lse is None
        else torch.empty(B, H, L).copy_(lse),
        "entropy": torch.zeros(B, H, L),
        "peak": torch.zeros(B, H, L),
        "distance": torch.zeros(B, H, L) if distance else None,
        "received": torch.zeros(n_parts, B, H, S),
        "mass": None if map_size is None else torch.zeros(n_parts, B, H, M, N),
        "maximum": None if map_size is None else torch.zeros(n_parts, B, H, M, N),
        "row_cells": torch.arange(M, dtype=torch.int32).repeat_interleave(row_edges.diff()),
        "col_edges": col_edges.int(),
        "bands": bands.limits,
        "within": bands.sums,
        "observed": None if observe is None else torch.zeros(n_parts, B, H, S),
    }
    numbers = {"B": B, "H": H, "K": k.shape[1], "L": L, "S": S, "D": q.shape[-1], "M": M, "N": N}
    each = int(len(tensors["limits"]) > 1)
    rows = L if progress is None else max(AT_ONCE // (B * H * S), ROWS * n_parts)
    for first in range(0, L, rows):
        stop = min(first + rows, L)
        job = _Job(
            **{name: None if x is None else x.data_ptr() for name, x in tensors.items()},
            **numbers,
            n_parts=n_parts,
            scale=scoring.scale,
            each_limit=each,
            first_row=first,
            stop_row=stop,
            n_bands=len(bands.limits),
            first_observed=L - min(observe or 0, L),
        )
        kernel(job, threads)
        if progress is not None:
            progress(stop / L)
    found = {name: tensors[name] for name in ("lse", "entropy", "peak", "distance")}
    if map_size is None:
        maps = None
    else:
        maps = Map(tensors["mass"].sum(0), tensors["maximum"].amax(0), row_edges, col_edges)
    return {
        **found,
        "received": tensors["received"].sum(0),
        "top": top,
        "map": maps,
        "within": bands.join(),
        "observed": None if observe is None else tensors["observed"].sum(0),
    }


@cache
def find_kernel() -> Callable[["_Job", int], None] | None:
    """The kernel, compiled if that has not been done; None if it cannot be."""
    library = load_library(STATISTICS)
    if library is None:
        return None
    function = library.attention_statistics
    function.argtypes = [ctypes.POINTER(_Job), ctypes.c_void_p, ctypes.c_uint]
    parallel = find_threads().parallel

    def run(job: _Job, threads: int) -> None:
        if function(job, parallel, threads):
            raise MemoryError(f"No memory for the scores of {ROWS} queries and {job.S:,} keys.")

    return run


class _Job(ctypes.Structure):
    """`job_t` of kernel.c."""

    _fields_ = (
        *((name, ctypes.c_void_p) for name in ("q", "k", "positions", "known", "limits")),
        *((name, ctypes.c_void_p) for name in ("lse", "entropy", "peak", "distance", "received")),
        *((name, ctypes.c_void_p) for name in ("mass", "maximum", "row_cells", "col_edges")),
        *((name, ctypes.c_void_p) for name in ("bands", "within", "observed")),
        ("scale", ctypes.c_float),
        *((name, ctypes.c_int32) for name in ("B", "H", "K", "L", "S", "D", "M", "N")),
        *((name, ctypes.c_int32) for name in ("each_limit", "n_parts", "first_row", "stop_row")),
        *((name, ctypes.c_int32) for name in ("n_bands", "first_observed", "next", "failed")),
    )


def _as_pair(map_size: int | tuple[int, int] | None) -> tuple[int, int]:
    if map_size is None:
        return 1, 1
    return (map_size, map_size) if isinstance(map_size, int) else map_size
