"""The Triton kernels of GELU and of its derivative (gelu.py says why)."""

# pyright: reportArgumentType=false, reportAttributeAccessIssue=false, reportCallIssue=false
# pyright: reportIndexIssue=false, reportOperatorIssue=false

from typing import no_type_check

import triton
import triton.language as tl


@no_type_check
@triton.jit
def distribute(x):
    """Φ(x), the share of a normal distribution below x, and exp(−x²/2)."""
    z = tl.abs(x) * 0.7071067811865476
    bell = tl.exp2(-1.4426950408889634 * z * z)
    t = 1.0 / (1.0 + 0.3275911 * z)
    series = t * (1.421413741 + t * (-1.453152027 + t * 1.061405429))
    tail = 0.5 * bell * t * (0.254829592 + t * (-0.284496736 + series))
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
