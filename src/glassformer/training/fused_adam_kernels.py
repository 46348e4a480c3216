"""The Triton kernel of an AdamW step over many tensors (fused_adam.py says how it is used).

    program ─ blocks → tensor, block in it ─ rows → addresses, size, decay ─ p, g, m, v of the block

It is imported only when needed, because this file imports triton.
"""

# pyright: reportArgumentType=false, reportAttributeAccessIssue=false, reportCallIssue=false
# pyright: reportIndexIssue=false, reportOperatorIssue=false

from typing import no_type_check

import triton
import triton.language as tl

BLOCK = 2048  # numbers of a program
WARPS = 8


@no_type_check
@triton.jit
def _correct_bias(count, log_beta):
    """1 − βⁿ = −expm1(n log β).

    In float32, 1 − βⁿ itself would lose the digits of n (1 − β): three for β = 0.999, n = 1. The
    series is exact to a rounding where βⁿ is near 1, and elsewhere nothing cancels. Float64 would
    do, too, but most GPUs have few units for it, and each thread computes this.
    """
    x = count * log_beta
    small = tl.maximum(x, -0.5)
    series = 1.0
    for k in tl.static_range(7):  # up to x⁸/8!; the next term is below 1e-8 of the sum
        series = 1.0 + small * series / (8.0 - k)
    return tl.where(x < -0.5, 1.0 - tl.exp(x), -small * series)


@no_type_check
@triton.jit
def _point(row, column: tl.constexpr, cells):
    """Addresses of a block's cells, which begins at a multiple of 16 bytes."""
    start = tl.multiple_of(tl.load(row + column), 16).to(tl.pointer_type(tl.float32))
    return tl.multiple_of(start, 16) + cells


@no_type_check
@triton.jit
def _update(row, cells, inside, scale, lr, eps, new1, new2, log1, log2):
    p_at, g_at = _point(row, 0, cells), _point(row, 1, cells)
    m_at, v_at = _point(row, 2, cells), _point(row, 3, cells)
    p, g = tl.load(p_at, mask=inside), tl.load(g_at, mask=inside)
    m, v = tl.load(m_at, mask=inside), tl.load(v_at, mask=inside)
    # The factors follow the loads, which so do not wait for the step's number.
    count = tl.load(tl.load(row + 4).to(tl.pointer_type(tl.float32)))
    decay = lr * tl.load(row + 6).to(tl.int32).to(tl.float32, bitcast=True)
    rate = lr / _correct_bias(count, log1)
    root = 1.0 / tl.sqrt(_correct_bias(count, log2))
    g *= scale
    m += (g - m) * new1
    v += (g * g - v) * new2
    p -= decay * p
    p -= rate * m / (tl.sqrt(v) * root + eps)
    tl.store(p_at, p, mask=inside)
    tl.store(m_at, m, mask=inside)
    tl.store(v_at, v, mask=inside)


@no_type_check
@triton.jit
def adam_kernel(
    rows,  # of each tensor: addresses of p, g, m, v and step, size, bits of the weight decay
    blocks,  # of each program: tensor and block in it
    factor,  # of the gradients, or None
    found_inf,  # not 0: nothing is updated; or None
    lr,
    eps,
    new1,  # 1 − β₁, the weight of a new gradient in its mean
    new2,
    log1,  # log β₁
    log2,
    COLUMNS: tl.constexpr,
    BLOCK: tl.constexpr,
):
    program = 2 * tl.program_id(0)
    row = rows + tl.load(blocks + program) * COLUMNS
    origin = tl.load(blocks + program + 1).to(tl.int64) * BLOCK
    size = tl.load(row + 5)
    if found_inf is not None:
        size = tl.where(tl.load(found_inf) == 0, size, 0)
    scale = 1.0
    if factor is not None:
        scale = tl.load(factor).to(tl.float32)
    cells = origin + tl.arange(0, BLOCK)
    if origin + BLOCK <= size:  # a mask whose bounds are unknown makes accesses 4 bytes wide
        _update(row, cells, None, scale, lr, eps, new1, new2, log1, log2)
    else:
        _update(row, cells, cells < size, scale, lr, eps, new1, new2, log1, log2)
