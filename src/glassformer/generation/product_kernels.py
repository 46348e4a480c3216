"""The Triton kernel of a product with a few rows, and what is fused with it (step_kernels.py)."""

# pyright: reportArgumentType=false, reportAttributeAccessIssue=false, reportCallIssue=false
# pyright: reportIndexIssue=false, reportOperatorIssue=false

from typing import no_type_check

import triton
import triton.language as tl
from triton.language.extra.cuda import gdc_launch_dependents, gdc_wait

from glassformer.functional.quantized.gpu_kernels import widen


@no_type_check
@triton.jit
def _activate(x, KIND: tl.constexpr):
    if KIND == "relu":
        return tl.maximum(x, 0.0)
    if KIND == "silu":
        return x / (1.0 + tl.exp(-x))
    if KIND == "gelu":
        return 0.5 * x * (1.0 + tl.erf(x * 0.7071067811865476))
    if KIND == "gelu_tanh":
        inner = 0.7978845608028654 * (x + 0.044715 * x * x * x)
        return x / (1.0 + tl.exp(-2.0 * inner))
    return x


@no_type_check
@triton.jit
def _merge_parts(
    parts,
    sums,
    start,
    H,
    dtype: tl.constexpr,
    D: tl.constexpr,
    SPLITS: tl.constexpr,
    BLOCK_K: tl.constexpr,
):
    """Columns `start` … of one row of the heads' outputs: the mean of what parts of the keys gave.

    As merge_kernel computes it (step_kernels.py). A row of the tile is a head, so that its weights
    are numbers and its loads are 16 bytes wide.
    """
    HEADS: tl.constexpr = BLOCK_K // D
    head, d = start // D + tl.arange(0, HEADS), tl.arange(0, D)
    is_there = head < H
    first = head * SPLITS
    inside = is_there[:, None] & (d >= 0)[None, :]
    highest = tl.load(sums + first * 2, mask=is_there, other=0.0)
    for part in tl.static_range(1, SPLITS):
        other = tl.load(sums + (first + part) * 2, mask=is_there, other=0.0)
        highest = tl.maximum(highest, other)
    total = tl.zeros_like(highest)
    mean = tl.zeros([HEADS, D], tl.float32)
    for part in tl.static_range(SPLITS):
        cell = first + part
        value = tl.load(parts + cell[:, None] * D + d[None, :], mask=inside, other=0.0)
        share = tl.exp(tl.load(sums + cell * 2, mask=is_there, other=0.0) - highest)
        total += share * tl.load(sums + cell * 2 + 1, mask=is_there, other=1.0)
        mean += share[:, None] * value
    return tl.reshape((mean / total[:, None]).to(dtype), [1, BLOCK_K])


@no_type_check
@triton.jit
def _add_two(a0, a1, b0, b1):
    return a0 + b0, a1 + b1


@no_type_check
@triton.jit
def _add_three(a0, a1, a2, b0, b1, b2):
    return a0 + b0, a1 + b1, a2 + b2


@no_type_check
@triton.jit
def _add_four(a0, a1, a2, a3, b0, b1, b2, b3):
    return a0 + b0, a1 + b1, a2 + b2, a3 + b3


@no_type_check
@triton.jit
def _sum_each(tiles, AXIS: tl.constexpr, ROWS: tl.constexpr):
    """The sums of ROWS tiles, each as if it were alone; threads meet once for all of them."""
    if ROWS == 1:
        return (tl.sum(tiles[0], AXIS),)
    elif ROWS == 2:  # noqa: RET505  (the compiler looks at what follows a return, too)
        return tl.reduce(tiles, AXIS, _add_two)
    elif ROWS == 3:
        return tl.reduce(tiles, AXIS, _add_three)
    else:
        return tl.reduce(tiles, AXIS, _add_four)


@no_type_check
@triton.jit
def _add_each(tiles, others, ROWS: tl.constexpr):
    sums = ()
    for row in tl.static_range(ROWS):
        sums += (tiles[row] + others[row],)
    return sums


@no_type_check
@triton.jit
def multiply_kernel(  # noqa: PLR0912, PLR0915  (a kernel is one function)
    x,
    y,
    weight,
    weight_scale,
    bias,
    norm_weight,
    norm_bias,
    residual,
    sums,
    best,
    best_index,
    excluded,
    forbidden,
    scale,
    eps,
    N,
    H,
    K: tl.constexpr,
    D: tl.constexpr,
    SPLITS: tl.constexpr,
    NORM: tl.constexpr,
    ACTIVATION: tl.constexpr,
    GATED: tl.constexpr,
    HAS_SCALES: tl.constexpr,
    SCALES: tl.constexpr,
    HAS_BIAS: tl.constexpr,
    HAS_NORM_BIAS: tl.constexpr,
    HAS_RESIDUAL: tl.constexpr,
    CHOOSES: tl.constexpr,
    COPIES: tl.constexpr,
    FORBIDS: tl.constexpr,
    OVERLAPS: tl.constexpr,
    ROWS: tl.constexpr,
    WIDTH: tl.constexpr,
    BLOCK_N: tl.constexpr,
    BLOCK_K: tl.constexpr,
):
    """y = f(norm(x) Wᵀ + b) + residual for BLOCK_N columns of y, and perhaps their largest.

    With SPLITS > 0, x are the parts that attend_kernel left for its only row. With HAS_SCALES, W
    has one byte a number, and each of its rows a scale. A row of y has the same bits as if x had
    no other.
    """
    dtype = y.dtype.element_ty
    program = tl.program_id(0)
    columns = program * BLOCK_N + tl.arange(0, BLOCK_N)
    is_inside = columns < N
    if OVERLAPS:
        gdc_launch_dependents()
    # All that no kernel writes is on its way before anything is known of x.
    k = tl.arange(0, BLOCK_K)
    # 8 numbers at a time, whatever their type: the layout that parts of x have.
    together = tl.max_contiguous(tl.multiple_of(k, 8), 8)
    cells = columns[:, None].to(tl.int64) * K + together[None, :]
    visible = is_inside[:, None] & (k < K)[None, :]
    later = cells
    gates = tl.zeros([BLOCK_N, BLOCK_K], weight.dtype.element_ty)
    if GATED:
        gates = tl.load(weight + cells, mask=visible, other=0.0)
        later = cells + N.to(tl.int64) * K
    values = tl.load(weight + later, mask=visible, other=0.0)
    step = tl.zeros([BLOCK_N], tl.float32)
    gate_step = tl.zeros([BLOCK_N], tl.float32)
    if HAS_SCALES:
        step = tl.load(weight_scale + columns, mask=is_inside, other=0.0)
        if GATED:
            gate_step = step
            step = tl.load(weight_scale + N + columns, mask=is_inside, other=0.0)
    shift = tl.zeros([BLOCK_N], tl.float32)
    gate_shift = tl.zeros([BLOCK_N], tl.float32)
    if HAS_BIAS:
        shift = tl.load(bias + columns, mask=is_inside, other=0.0).to(tl.float32)
        if GATED:
            gate_shift = shift
            shift = tl.load(bias + N + columns, mask=is_inside, other=0.0).to(tl.float32)
    factors = tl.zeros([BLOCK_K], tl.float32)
    norm_shift = tl.zeros([BLOCK_K], tl.float32)
    if NORM != "none":
        factors = tl.load(norm_weight + k, mask=k < K, other=0.0).to(tl.float32)
    if HAS_NORM_BIAS:
        norm_shift = tl.load(norm_bias + k, mask=k < K, other=0.0).to(tl.float32)
    if OVERLAPS:
        gdc_wait()
    before = ()
    if HAS_RESIDUAL:
        for row in tl.static_range(ROWS):
            before += (tl.load(residual + row * N + columns, mask=is_inside, other=0.0),)
    means, squares = (), ()
    if NORM != "none":
        wide = tl.arange(0, WIDTH)
        whole = ()
        for row in tl.static_range(ROWS):
            there = (wide < K)[None, :]
            each = tl.load(x + row * K + wide[None, :], mask=there, other=0.0)
            whole += (each.to(tl.float32),)
        if NORM == "layer":
            means = _sum_each(whole, None, ROWS)
        squared = ()
        for row in tl.static_range(ROWS):
            each = whole[row]
            if NORM == "layer":
                each = tl.where((wide < K)[None, :], each - means[row] / K, 0.0)
            squared += (each * each,)
        squares = _sum_each(squared, None, ROWS)
    out, left = (), ()
    for start in tl.static_range(0, K, BLOCK_K):
        k = start + tl.arange(0, BLOCK_K)
        has_k = k < K
        if start > 0:
            visible = is_inside[:, None] & has_k[None, :]
            if GATED:
                gates = tl.load(weight + cells + start, mask=visible, other=0.0)
            values = tl.load(weight + later + start, mask=visible, other=0.0)
            if NORM != "none":
                factors = tl.load(norm_weight + k, mask=has_k, other=0.0).to(tl.float32)
            if HAS_NORM_BIAS:
                norm_shift = tl.load(norm_bias + k, mask=has_k, other=0.0).to(tl.float32)
        products, gate_products = (), ()
        for row in tl.static_range(ROWS):
            if SPLITS > 0:
                part = _merge_parts(x, sums, start, H, dtype, D, SPLITS, BLOCK_K)
            else:
                part = tl.load(x + row * K + k[None, :], mask=has_k[None, :], other=0.0)
            part = part.to(tl.float32)
            if NORM != "none":
                if NORM == "layer":
                    part = part - means[row] / K
                part = part * tl.rsqrt(squares[row] / K + eps)
                if NORM == "rms":  # it is rounded before the weight is applied
                    part = part.to(dtype).to(tl.float32)
                part = part * factors[None, :] + norm_shift[None, :]
                part = part.to(dtype).to(tl.float32)
            if SCALES:
                part = (part * scale).to(dtype).to(tl.float32)
            products += (widen(values) * part,)
            if GATED:
                gate_products += (widen(gates) * part,)
        found = _sum_each(products, 1, ROWS)
        out = found if start == 0 else _add_each(out, found, ROWS)
        if GATED:
            found = _sum_each(gate_products, 1, ROWS)
            left = found if start == 0 else _add_each(left, found, ROWS)
    for row in tl.static_range(ROWS):
        value = out[row]
        if HAS_SCALES:
            value = value * step
        value = (value + shift).to(dtype).to(tl.float32)
        if GATED:
            gate = left[row]
            if HAS_SCALES:
                gate = gate * gate_step
            gate = (gate + gate_shift).to(dtype).to(tl.float32)
            value = _activate(gate, ACTIVATION).to(dtype).to(tl.float32) * value
        else:
            value = _activate(value, ACTIVATION)
        if HAS_RESIDUAL:
            value = before[row].to(tl.float32) + value.to(dtype).to(tl.float32)
        value = value.to(dtype)
        tl.store(y + row * N + columns, value, mask=is_inside)
        if CHOOSES:
            score = value.to(tl.float32)
            score += tl.load(excluded + columns, mask=is_inside, other=float("-inf"))
            if FORBIDS:
                hidden = tl.load(forbidden + row // COPIES * N + columns, mask=is_inside, other=0)
                score = tl.where(hidden != 0, float("-inf"), score)
            # NaN is never the largest, so it becomes +∞ with an index that no token has.
            is_nan = is_inside & ~(value == value)  # noqa: PLR0124
            score = tl.where(is_nan, float("inf"), score)
            index = tl.where(is_nan, -1, columns)
            top = tl.max(score, 0)
            first = tl.min(tl.where(score == top, index, 2147483647), 0)
            place = row * tl.num_programs(0) + program
            tl.store(best + place, top)
            tl.store(best_index + place, first)
