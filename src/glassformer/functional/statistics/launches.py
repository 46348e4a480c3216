"""How the Triton kernels are launched: their shapes, their arguments, and how much of each."""

import math
from functools import cache
from typing import Any, NamedTuple

import torch
from torch import Tensor

from glassformer.functional.biases import ALiBi
from glassformer.functional.cells import Extent
from glassformer.functional.checks import Scoring
from glassformer.functional.masks import Mask
from glassformer.functional.masks.limits import FAR, Limits
from glassformer.functional.statistics.layout import Packed

_LOG2E = 1 / math.log(2)
_PROGRAMS_PER_CORE = 6  # of the GPU: with fewer, some of its cores would be idle


class Shape(NamedTuple):
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


def statistics_shape(q: Tensor, distance: bool) -> Shape:
    if q.dtype == torch.float32 or q.shape[-1] > 128:
        return Shape(64, 64, 4, 2, None)
    return Shape(64, 128, 4, 2 if q.shape[-1] > 64 else 3 if distance else 4, 168)


def lse_shape(q: Tensor, top: int | None = None) -> Shape:
    if top is not None:  # ranks take two registers each
        return Shape(64, 32, 4, 2, None)
    if q.dtype == torch.float32 or q.shape[-1] > 128:
        return Shape(64, 64, 4, 2, None)
    return Shape(64, 128, 4, 2, 128) if q.shape[-1] <= 64 else Shape(128, 64, 8, 3, 128)


class Operands(NamedTuple):
    """The arguments of both kernels, in order."""

    q: Tensor
    k: Tensor
    numbers: tuple[Any, ...]
    factors: tuple[float, float]
    constants: dict[str, Any]

    @classmethod
    def of(cls, q: Tensor, k: Tensor, scoring: Scoring, packed: Packed | None) -> "Operands":
        q, k = (x if x.stride(-1) == 1 else x.contiguous() for x in (q, k))
        if q.dtype == torch.bfloat16 and not q.is_cuda:
            q, k = q.float(), k.float()  # the interpreter would multiply the bits as integers
        scale, cap = scoring.scale * _LOG2E, 0.0
        if scoring.softcap is not None:
            scale, cap = scoring.scale / scoring.softcap, scoring.softcap * _LOG2E
        if scale < 0:  # the largest product must be the largest score
            q, scale = -q, -scale
        slopes = q  # not used
        if isinstance(scoring.bias, ALiBi):
            slopes = scoring.bias.slopes.detach().float() * _LOG2E
        limits = find_limits(scoring, scoring.mask, packed, q.device)
        return cls(
            q,
            k,
            (
                *_limit_arguments(limits),
                slopes,
                *q.stride()[:3],
                *k.stride()[:3],
                q.shape[1],
                q.shape[1] // k.shape[1],
                *_sequence_arguments(packed, q, k),
            ),
            (scale, cap),
            {
                "D": q.shape[3],
                "WIDTH": max(16, 1 << (q.shape[3] - 1).bit_length()),
                "ALIBI": scoring.bias is not None,
                "SOFTCAP": scoring.softcap is not None,
                # A float32 product made of three tf32 products is exact to about 2⁻²¹.
                "PRECISION": "tf32x3" if q.dtype == torch.float32 else "ieee",
                "PACKED": packed is not None,
                "PAGE": 0 if packed is None or packed.block_table is None else k.shape[2],
            },
        )

    def limited(self, limits: Tensor) -> "Operands":
        """The same operands in other limits."""
        return self._replace(numbers=(*_limit_arguments(limits), *self.numbers[2:]))


def find_limits(
    scoring: Scoring, mask: Mask | None, packed: Packed | None, device: torch.device
) -> Tensor:
    """The limits of a mask as the kernels read them, one row of six for all or each sequence."""
    extent = scoring.extent
    if packed is not None:  # those of a square without end, which kernels cut to each sequence
        extent = Extent(1, extent.H, FAR, FAR)
    return Limits.of(mask, extent).tensor(extent.B, device)


def count_blocks(length: int, size: int) -> int:
    return -(-length // size)


def count_parts(programs: int, most: int, device: torch.device) -> int:
    """The number of parts of each program's work, so that all cores are busy."""
    return max(min(_PROGRAMS_PER_CORE * _n_cores(device) // programs, most), 1)


def _limit_arguments(limits: Tensor) -> tuple[Tensor, int]:
    return limits, 6 if len(limits) > 1 else 0


def _sequence_arguments(packed: Packed | None, q: Tensor, k: Tensor) -> tuple[Any, ...]:
    if packed is None:
        return (q, k, 1, 0, q, 0)  # not used
    steps = (packed.n_sequences - 1).bit_length()  # of a binary search
    table = packed.block_table
    place = (q, 0) if table is None else (table, table.stride(0))
    return (packed.query_starts, packed.key_starts, packed.n_sequences, steps, *place)


@cache
def _n_cores(device: torch.device) -> int:
    if device.type != "cuda":
        return 1
    return torch.cuda.get_device_properties(device).multi_processor_count
