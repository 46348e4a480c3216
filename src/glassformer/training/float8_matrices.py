"""Matrices of 8 bits for training: rounding, in the two orders that products read, and products.

Tensor cores of 8 bits multiply rows by rows: each sum runs along neighbouring numbers of both
operands. A matrix that takes part in two products, whose sums run along its rows and its columns,
is needed in both orders, and one kernel reads it once and writes both.

The scale is a power of two, so that scaling is exact. It is found anew for each matrix, from as
many rows, evenly spaced, as have a quarter of a million numbers: the largest of these gets room for
numbers 14 times as large, and what is larger still becomes the largest number of the format. That
costs next to nothing, because a floating-point format keeps its precision over a wide range: 10
powers of two below that largest number in e4m3, 23 in e5m2. Nothing is remembered between steps.
"""

from typing import NamedTuple

import torch
import torch.nn.functional as F
from jaxtyping import Float
from torch import Tensor

from glassformer.functional.triton_support import triton_refusal

OPERANDS, GRADIENTS = torch.float8_e4m3fn, torch.float8_e5m2
MULTIPLE = 16  # the products need sizes that are multiples of this
_SAMPLE = 1 << 18  # numbers
_TILE = 128  # rows that a kernel sums
_GOALS = {OPERANDS: 4, GRADIENTS: 9}  # the exponent that the largest number of the sample gets


class Rounded(NamedTuple):
    """scale · numbers of 8 bits, in both orders."""

    rows: Float[Tensor, "N C"]
    columns: Float[Tensor, "C N"]
    scale: Float[Tensor, ""]


def round_matrix(x: Float[Tensor, "N C"]) -> Rounded:
    """An operand of a forward product.

    >>> rounded = round_matrix(torch.tensor([[1.0, 3.3]]))
    >>> rounded.rows.float() * rounded.scale, rounded.columns.shape
    (tensor([[1.0000, 3.2500]]), torch.Size([2, 1]))
    """
    return Rounded(*_round(x, None, "plain", OPERANDS, False)[:3])


def round_gelu(x: Float[Tensor, "N C"]) -> Rounded:
    """GELU(x), which exists in 8 bits alone."""
    return Rounded(*_round(x, None, "gelu", OPERANDS, False)[:3])


def round_gradient(
    gradient: Float[Tensor, "N C"], *, sums: bool = True
) -> tuple[Rounded, Float[Tensor, " C"] | None]:
    """The gradient of a product, and with `sums` that of its bias: the sums of its columns."""
    *rounded, partial = _round(gradient, None, "plain", GRADIENTS, sums)
    return Rounded(*rounded), partial.sum(0) if sums else None


def round_gelu_gradient(
    x: Float[Tensor, "N C"], gradient: Float[Tensor, "N C"], *, sums: bool = True
) -> tuple[Rounded, Float[Tensor, " C"] | None]:
    """The gradient behind GELU(x), given that before it; the rest as in `round_gradient`."""
    *rounded, partial = _round(x, gradient, "derivative", GRADIENTS, sums)
    return Rounded(*rounded), partial.sum(0) if sums else None


def multiply(
    a: Float[Tensor, "N K"],
    a_scale: Float[Tensor, ""],
    b: Float[Tensor, "M K"],
    b_scale: Float[Tensor, ""],
    *,
    bias: Float[Tensor, " M"] | None = None,
    dtype: torch.dtype = torch.bfloat16,
    fast: bool = True,
) -> Float[Tensor, "N M"]:
    """a · bᵀ + bias. On Hopper `fast` sums have 14 bits, which is too few for long ones."""
    return torch._scaled_mm(  # pyright: ignore[reportPrivateImportUsage]
        a,
        b.t(),
        scale_a=a_scale,
        scale_b=b_scale,
        bias=None if bias is None else bias.to(dtype),
        out_dtype=dtype,
        use_fast_accum=fast,
    )


@torch.library.custom_op(
    "glassformer::round_to_float8", mutates_args=(), tags=(torch.Tag.flexible_layout,)
)
def _round(
    x: Tensor, gradient: Tensor | None, kind: str, dtype: torch.dtype, sums: bool
) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """Both orders, the scale, and the sums of columns over each tile of rows."""
    # |GELU(x)| ≤ |x|, and its slope is at most 1.13: what goes in tells the size of what comes out.
    sampled = x if gradient is None else gradient
    step = -(-x.numel() // _SAMPLE)
    if triton_refusal(x.device) is not None or len(x) % 4:
        return _round_by_torch(x, gradient, sampled[::step], kind, dtype, sums)
    from glassformer.training import float8_kernels as kernels

    (n, C), x, sampled = x.shape, x.contiguous(), sampled.contiguous()
    rounded, transposed, scale, partial = _make_results(x, dtype, sums)
    largest = scale.new_empty(kernels.SAMPLERS)
    with torch.cuda.device_of(x):
        kernels.sample_kernel[(kernels.SAMPLERS,)](
            sampled, largest, n, C, step, COLUMNS=kernels.COLUMNS
        )
        kernels.round_kernel[(-(-n // _TILE), -(-C // _TILE))](
            x,
            sampled,
            largest,
            rounded,
            transposed,
            scale,
            partial,
            n,
            C,
            KIND=kind,
            GOAL=_GOALS[dtype],
            MOST=torch.finfo(dtype).max,
            SUMS=sums,
            SAMPLERS=kernels.SAMPLERS,
            TILE=_TILE,
            num_warps=kernels.WARPS,  # pyright: ignore[reportCallIssue]
        )
    return rounded, transposed, scale, partial


def _make_results(
    x: Tensor, dtype: torch.dtype, sums: bool
) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    n, C = x.shape
    return (
        x.new_empty((n, C), dtype=dtype),
        x.new_empty((C, n), dtype=dtype),
        x.new_empty((), dtype=torch.float32),
        x.new_empty((-(-n // _TILE) if sums else 0, C), dtype=torch.float32),
    )


def _round_by_torch(
    x: Tensor,
    gradient: Tensor | None,
    sampled: Tensor,
    kind: str,
    dtype: torch.dtype,
    sums: bool,
) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    largest, most = sampled.float().abs().amax(), torch.finfo(dtype).max
    _, exponent = torch.frexp(largest)  # of the power of two above it
    exponent = torch.where(largest > 0, exponent - 1 - _GOALS[dtype], 0)
    scale = torch.ldexp(torch.ones_like(largest), exponent)
    exact = x.float()
    if kind == "gelu":
        exact = F.gelu(exact)
    elif gradient is not None:
        exact = torch.ops.aten.gelu_backward(gradient.float(), exact)
    small = (exact / scale).clamp(-most, most).to(dtype)
    partial = exact.new_empty(0, x.shape[1])
    if sums:
        partial = torch.stack([part.sum(0) for part in exact.split(_TILE)])
    return small, small.t().clone(memory_format=torch.contiguous_format), scale, partial


@_round.register_fake
def _(
    x: Tensor, gradient: Tensor | None, kind: str, dtype: torch.dtype, sums: bool
) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    del gradient, kind
    return _make_results(x, dtype, sums)
