"""Statistics on CUDA by two Triton kernels: when they apply, and how they are launched.

They support masks that are bands and rectangles, ALiBi, soft-capping and grouped heads, in float32,
bfloat16 and float16; otherwise `refusal` says why the streaming pass runs instead.
"""

import math
import os
from collections.abc import Callable
from functools import cache, lru_cache
from importlib.util import find_spec
from typing import Any, NamedTuple

import torch
from jaxtyping import Float, Int
from torch import Tensor

from glassformer.functional.biases import ALiBi, Bias
from glassformer.functional.cells import Extent
from glassformer.functional.checks import Scoring
from glassformer.functional.statistics.limits import Limits, is_band
from glassformer.functional.statistics.pooling import Map
from glassformer.installation import install_command

_LOG2E = 1 / math.log(2)
_PROGRAMS_PER_CORE = 6  # of the GPU: with fewer, some of its cores would be idle


def refusal(
    q: Tensor,
    scoring: Scoring,
    *,
    map_size: int | tuple[int, int] | None = None,
    top: int | None = None,
    query_positions: Tensor | None = None,
) -> str | None:
    """Why the kernels cannot compute this call; None if they can."""
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
    if top is not None:
        return "the kernels do not find the strongest keys"
    if query_positions is not None:
        return "the kernels need consecutive queries that end at the last key"
    if scoring.mask is not None and not is_band(scoring.mask):
        return "the kernels support only Causal, Window, Padding and Prefix, combined by &"
    if scoring.bias is not None and not _is_known_bias(scoring.bias, scoring.extent):
        return "the only bias that the kernels support is ALiBi, aligned bottom-right"
    M, N = _as_pair(map_size)
    if min(M, N) < 1 or max(L, S) * (min(M, L) + 1) >= 1 << 31:
        return f"the kernels count in 31 bits; got {L} queries, {S} keys and map_size={map_size}"
    return None


def measure(
    q: Float[Tensor, "B H L D"],
    k: Float[Tensor, "B K S D"],
    scoring: Scoring,
    *,
    lse: Float[Tensor, "B H L"] | None,
    map_size: int | tuple[int, int] | None,
    distance: bool = True,
    top: None = None,
    query_positions: None = None,
    progress: Callable[[float], None] | None = None,
) -> dict[str, Any]:
    """The fields of `AttentionStatistics`, in one pass over q kᵀ once `lse` is known."""
    from glassformer.functional.statistics.kernels import statistics_kernel

    del query_positions
    lse = row_lse(q, k, scoring) if lse is None else lse.to(torch.float32, copy=True).contiguous()
    B, H, L, S = scoring.extent
    M, N = (min(n, most) for n, most in zip(_as_pair(map_size), (L, S), strict=True))
    shape = _statistics_shape(q, distance)
    # A block of keys lies in one column of the map. Choose the size that wastes the least of the
    # last block; starting a tile costs as much as 32 keys.
    cell = _blocks(S, N)
    keys = min((16, 32, 64, shape.keys), key=lambda n: _blocks(cell, n) * (n + 32))
    programs = B * H * N * _blocks(cell, keys)
    n_parts = _parts(programs, _blocks(L, shape.rows), q.device)
    cells = "none" if map_size is None else _cells_of_a_tile(L, M, shape.rows)

    def zeros(*sizes: int) -> Tensor:
        return torch.zeros(sizes, dtype=torch.float32, device=q.device)

    entropy, far, peak = per_row = zeros(3, B, H, L)
    mass, maximum = zeros(2, B, H, M, N) if map_size is not None else (peak, peak)
    received = zeros(B, H, S)
    operands = _Operands.of(q, k, scoring)
    launch: Any = statistics_kernel[(programs * n_parts,)]
    with torch.cuda.device_of(q):
        for careful, cut in ((False, shape), (True, shape._replace(stages=1, registers=None))):
            launch(
                operands.q,
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
                _blocks(cell, keys),
                n_parts,
                *operands.factors,
                **operands.constants,
                ROWS=shape.rows,
                KEYS=keys,
                CELLS=cells,
                DISTANCE=distance,
                RAGGED=S % (N * keys) != 0,
                CAREFUL=careful,
                **cut.options(q.device),
            )
    if progress is not None:
        progress(1.0)
    edges = (_edges(n, parts, q.device).clone() for n, parts in ((L, M), (S, N)))
    return {
        "lse": lse,
        "entropy": entropy,
        "peak": peak,
        "distance": far if distance else None,
        "received": received,
        "top": top,
        "map": None if map_size is None else Map(mass, maximum, *edges),
    }


def row_lse(
    q: Float[Tensor, "B H L D"], k: Float[Tensor, "B K S D"], scoring: Scoring
) -> Float[Tensor, "B H L"]:
    """The log-sum-exp of every row of scores; −∞ where nothing is allowed."""
    from glassformer.functional.statistics.kernels import lse_kernel

    B, H, L, S = scoring.extent
    shape = _lse_shape(q)
    n_blocks = _blocks(L, shape.rows)
    n_parts = _parts(B * H * n_blocks, _blocks(S, shape.keys), q.device)
    parts = torch.empty(n_parts, B, H, L, dtype=torch.float32, device=q.device)
    operands = _Operands.of(q, k, scoring)
    launch: Any = lse_kernel[(B * H * n_blocks * n_parts,)]
    with torch.cuda.device_of(q):
        launch(
            operands.q,
            operands.k,
            parts,
            *operands.numbers,
            L,
            S,
            n_blocks,
            n_parts,
            *operands.factors,
            **operands.constants,
            ROWS=shape.rows,
            KEYS=shape.keys,
            **shape.options(q.device),
        )
    return parts[0] if n_parts == 1 else parts.logsumexp(0)


class _Shape(NamedTuple):
    """The launch shape of a kernel: the fastest of those measured (docs/decisions/0009)."""

    rows: int
    keys: int
    warps: int
    stages: int
    registers: int | None  # with 168, three programs of four warps share a core; with 128, four

    def options(self, device: torch.device) -> dict[str, Any]:
        if device.type != "cuda":
            return {}
        names = ("num_warps", "num_stages", "maxnreg")
        return dict(zip(names, (self.warps, self.stages, self.registers), strict=True))


def _statistics_shape(q: Tensor, distance: bool) -> _Shape:
    if q.dtype == torch.float32 or q.shape[-1] > 128:
        return _Shape(64, 64, 4, 2, None)
    return _Shape(64, 128, 4, 2 if q.shape[-1] > 64 else 3 if distance else 4, 168)


def _lse_shape(q: Tensor) -> _Shape:
    if q.dtype == torch.float32 or q.shape[-1] > 128:
        return _Shape(64, 64, 4, 2, None)
    return _Shape(64, 128, 4, 2, 128) if q.shape[-1] <= 64 else _Shape(128, 64, 8, 3, 128)


def _is_known_bias(bias: Bias, extent: Extent) -> bool:
    if not isinstance(bias, ALiBi) or isinstance(bias.offset, Tensor):
        return False
    return bias.offset is None or bias.offset == extent.S - extent.L


class _Operands(NamedTuple):
    """The arguments of both kernels, in order."""

    q: Tensor
    k: Tensor
    numbers: tuple[Any, ...]
    factors: tuple[float, float]
    constants: dict[str, Any]

    @classmethod
    def of(cls, q: Tensor, k: Tensor, scoring: Scoring) -> "_Operands":
        q, k = (x if x.stride(-1) == 1 else x.contiguous() for x in (q, k))
        if q.dtype == torch.bfloat16 and not q.is_cuda:
            q, k = q.float(), k.float()  # the interpreter would multiply the bits as integers
        scale, cap = scoring.scale * _LOG2E, 0.0
        if scoring.softcap is not None:
            scale, cap = scoring.scale / scoring.softcap, scoring.softcap * _LOG2E
        if scale < 0:  # the largest product must be the largest score
            q, scale = -q, -scale
        limits = Limits.of(scoring.mask, scoring.extent).tensor(scoring.extent.B, q.device)
        slopes = limits  # not used
        if isinstance(scoring.bias, ALiBi):
            slopes = scoring.bias.slopes.detach().float() * _LOG2E
        H, D = q.shape[1], q.shape[3]
        per_batch = 6 if len(limits) > 1 else 0
        return cls(
            q,
            k,
            (limits, slopes, *q.stride()[:3], *k.stride()[:3], per_batch, H, H // k.shape[1]),
            (scale, cap),
            {
                "D": D,
                "WIDTH": max(16, 1 << (D - 1).bit_length()),
                "ALIBI": scoring.bias is not None,
                "SOFTCAP": scoring.softcap is not None,
                # A float32 product made of three tf32 products is exact to about 2⁻²¹.
                "PRECISION": "tf32x3" if q.dtype == torch.float32 else "ieee",
            },
        )


def _cells_of_a_tile(L: int, M: int, rows: int) -> str:
    if not L % (M * rows):
        return "one"
    return "two" if rows <= L // M else "many"


def _as_pair(map_size: int | tuple[int, int] | None) -> tuple[int, int]:
    if map_size is None:
        return 1, 1
    return (map_size, map_size) if isinstance(map_size, int) else map_size


def _blocks(length: int, size: int) -> int:
    return -(-length // size)


def _parts(programs: int, most: int, device: torch.device) -> int:
    """The number of parts of each program's work, so that all cores are busy."""
    return max(min(_PROGRAMS_PER_CORE * _n_cores(device) // programs, most), 1)


@cache
def _n_cores(device: torch.device) -> int:
    if device.type != "cuda":
        return 1
    return torch.cuda.get_device_properties(device).multi_processor_count


# Cached: copying numbers to a GPU waits for its queued work.
@lru_cache(maxsize=256)
def _edges(length: int, n: int, device: torch.device) -> Int[Tensor, " n+1"]:
    return torch.tensor([a * length // n for a in range(n + 1)], device=device)


@cache
def triton_refusal(device: torch.device) -> str | None:
    """Why no kernel of ours can run on this device; None if it can."""
    if device.type != "cuda" and os.environ.get("TRITON_INTERPRET") != "1":
        return f"the kernels run on CUDA, not on {device.type}"
    if find_spec("triton") is None:
        return f"triton is not installed: {install_command('gpu')}"
    if device.type == "cuda":
        if torch.version.hip is not None:
            return "the kernels are untested on ROCm"
        if torch.cuda.get_device_capability(device) < (8, 0):
            return "the kernels need a GPU of compute capability 8.0 or more"
    return None
