"""The Triton kernels of GELU and of its derivative (gelu.py says why)."""

# pyright: reportArgumentType=false, reportAttributeAccessIssue=false, reportCallIssue=false
# pyright: reportIndexIssue=false, reportOperatorIssue=false

import os
from typing import no_type_check

import triton
import triton.language as tl

INTERPRETED = tl.constexpr(os.environ.get("TRITON_INTERPRET") == "1")


@no_type_check
@triton.jit
def _invert(x):
    """1/x of numbers that are neither tiny nor huge, in one instruction."""
    if INTERPRETED:
        return 1.0 / x
    return tl.inline_asm_elementwise(
        "rcp.approx.ftz.f32 $0, $1;", "=f,f", [x], dtype=tl.float32, is_pure=True, pack=1
    )


@no_type_check
@triton.jit
def distribute(x):
    """Φ(x), the share of a normal distribution below x, and exp(−x²/2)."""
    bell = tl.exp2(x * x * -0.7213475204444817)
    t = _invert(1.0 + 0.23164188838064563 * tl.abs(x))
    # The polynomial of the approximation, halved, by Horner's rule.
    series = 0.127414796 + t * (
        -0.142248368 + t * (0.7107068705 + t * (-0.7265760135 + t * 0.5307027145))
    )
    tail = bell * t * series
    return tl.where(x < 0, tail, 1.0 - tail), bell


@no_type_check
@triton.jit
def gelu_kernel(x, y, n, BLOCK: tl.constexpr):
    cells = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    value = tl.load(x + cells, mask=cells < n, other=0.0).to(tl.float32)
    share, _ = distribute(value)
    tl.store(y + cells, (value * share).to(y.dtype.element_ty), mask=cells < n)


@no_type_check
@triton.jit
def gelu_backward_kernel(x, gradient, out, n, BLOCK: tl.constexpr):
    cells = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    value = tl.load(x + cells, mask=cells < n, other=0.0).to(tl.float32)
    above = tl.load(gradient + cells, mask=cells < n, other=0.0).to(tl.float32)
    share, bell = distribute(value)
    slope = share + value * bell * 0.3989422804014327  # Φ(x) + x φ(x)
    tl.store(out + cells, (above * slope).to(out.dtype.element_ty), mask=cells < n)
