"""The Triton kernel of a product of many rows with weights of one byte (gpu.py launches it)."""

# pyright: reportArgumentType=false, reportAttributeAccessIssue=false, reportCallIssue=false
# pyright: reportIndexIssue=false, reportOperatorIssue=false

from typing import no_type_check

import triton
import triton.language as tl

_TWO_TO_120 = tl.constexpr(2.0**120)


@no_type_check
@triton.jit
def widen(values):
    """Weights in float32, of whatever type; bytes are those of fp8.

    Few units of a GPU convert integers. So an int8 q becomes the last bits of 2²³ + 128 + q, which
    takes two of the operations that it has many units for. The bits of fp8 (1 sign, 4 exponent, 3
    mantissa) fit into those of a float, whose exponent then is 120 too low.
    """
    if values.dtype == tl.int8:
        bits = values.to(tl.uint8, bitcast=True).to(tl.uint32) ^ 0x4B000080
        return bits.to(tl.float32, bitcast=True) - 8388736.0
    if values.dtype == tl.uint8:
        bits = values.to(tl.uint32)
        bits = ((bits & 0x80) << 24) | ((bits & 0x7F) << 20)
        return bits.to(tl.float32, bitcast=True) * _TWO_TO_120
    return values.to(tl.float32)


@no_type_check
@triton.jit
def product_kernel(
    x,
    numbers,
    scale,
    bias,
    y,
    M,
    N,
    K,
    HAS_BIAS: tl.constexpr,
    BLOCK_M: tl.constexpr,
    BLOCK_N: tl.constexpr,
    BLOCK_K: tl.constexpr,
):
    """BLOCK_M rows and BLOCK_N columns of y = x (numbers · scale)ᵀ + bias."""
    rows = tl.program_id(1).to(tl.int64) * BLOCK_M + tl.arange(0, BLOCK_M)
    columns = tl.program_id(0) * BLOCK_N + tl.arange(0, BLOCK_N)
    out = tl.zeros([BLOCK_M, BLOCK_N], tl.float32)
    left = x + rows[:, None] * K
    right = numbers + columns[None, :].to(tl.int64) * K
    for start in range(0, K, BLOCK_K):
        k = start + tl.arange(0, BLOCK_K)
        part = tl.load(left + k[None, :], mask=(rows < M)[:, None] & (k < K)[None, :], other=0.0)
        inside = (columns < N)[None, :] & (k < K)[:, None]
        values = tl.load(right + k[:, None], mask=inside, other=0.0)
        out = tl.dot(part, widen(values).to(part.dtype), out)
    out *= tl.load(scale + columns, mask=columns < N, other=0.0)[None, :]
    if HAS_BIAS:
        out += tl.load(bias + columns, mask=columns < N, other=0.0).to(tl.float32)[None, :]
    inside = (rows < M)[:, None] & (columns < N)[None, :]
    tl.store(y + rows[:, None] * N + columns[None, :], out.to(y.dtype.element_ty), mask=inside)
