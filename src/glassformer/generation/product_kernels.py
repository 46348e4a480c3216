"""The Triton kernel of a product with a few rows, and what is fused with it (step_kernels.py)."""

# pyright: reportArgumentType=false, reportAttributeAccessIssue=false, reportCallIssue=false
# pyright: reportIndexIssue=false, reportOperatorIssue=false

from typing import no_type_check

import triton
import triton.language as tl
from triton.language.extra.cuda import gdc_launch_dependents, gdc_wait


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
    n_rows,
    H,
    dtype: tl.constexpr,
    D: tl.constexpr,
    SPLITS: tl.constexpr,
    ROWS: tl.constexpr,
    BLOCK_K: tl.constexpr,
):
    """Columns `start` … of the heads' outputs: the weighted mean of what parts of the keys gave.

    A row of the tile is a head, so that its weights are numbers and its loads are 16 bytes wide.
    """
    HEADS: tl.constexpr = BLOCK_K // D
    i, d = tl.arange(0, ROWS * HEADS), tl.arange(0, D)
    row, head = i // HEADS, start // D + i % HEADS
    is_there = (row < n_rows) & (head < H)
    first = (row * H + head) * SPLITS
    inside = is_there[:, None] & (d >= 0)[None, :]
    highest = tl.load(sums + first * 2, mask=is_there, other=0.0)
    for part in tl.static_range(1, SPLITS):
        other = tl.load(sums + (first + part) * 2, mask=is_there, other=0.0)
        highest = tl.maximum(highest, other)
    total = tl.zeros_like(highest)
    mean = tl.zeros([ROWS * HEADS, D], tl.float32)
    for part in tl.static_range(SPLITS):
        cell = first + part
        value = tl.load(parts + cell[:, None] * D + d[None, :], mask=inside, other=0.0)
        share = tl.exp(tl.load(sums + cell * 2, mask=is_there, other=0.0) - highest)
        total += share * tl.load(sums + cell * 2 + 1, mask=is_there, other=1.0)
        mean += share[:, None] * value
    return tl.reshape((mean / total[:, None]).to(dtype), [ROWS, BLOCK_K])


@no_type_check
@triton.jit
def _multiply_rows(values, part, ROWS: tl.constexpr, ALIKE: tl.constexpr):
    """part valuesᵀ in float32: (ROWS, k) by (n, k); with ALIKE, each row as if it were alone."""
    if ROWS == 1:  # two dimensions need no exchange among the threads
        return tl.sum(values.to(tl.float32) * tl.sum(part, 0)[None, :], 1)[None, :]
    if ALIKE:
        rows = tl.arange(0, ROWS)[:, None]
        out = tl.zeros([ROWS, values.shape[0]], tl.float32)
        for row in tl.static_range(ROWS):
            own = tl.sum(tl.where(rows == row, part, 0.0), 0)
            found = tl.sum(values.to(tl.float32) * own[None, :], 1)
            out = tl.where(rows == row, found[None, :], out)
        return out
    return tl.sum(values.to(tl.float32)[None, :, :] * part[:, None, :], 2)


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
    n_rows,
    N,
    H,
    K: tl.constexpr,
    D: tl.constexpr,
    SPLITS: tl.constexpr,
    NORM: tl.constexpr,
    ACTIVATION: tl.constexpr,
    GATED: tl.constexpr,
    IS_INT8: tl.constexpr,
    SCALES: tl.constexpr,
    HAS_BIAS: tl.constexpr,
    HAS_NORM_BIAS: tl.constexpr,
    HAS_RESIDUAL: tl.constexpr,
    CHOOSES: tl.constexpr,
    COPIES: tl.constexpr,
    FORBIDS: tl.constexpr,
    ALIKE: tl.constexpr,
    OVERLAPS: tl.constexpr,
    ROWS: tl.constexpr,
    WIDTH: tl.constexpr,
    BLOCK_N: tl.constexpr,
    BLOCK_K: tl.constexpr,
):
    """y = f(norm(x) Wᵀ + b) + residual for BLOCK_N columns of y, and perhaps their largest.

    With SPLITS > 0, x are the parts that attend_kernel left. With IS_INT8, W are integers, and each
    of its rows has a scale. With ALIKE, a row of y has the same bits as if x had no other.
    """
    dtype = y.dtype.element_ty
    program = tl.program_id(0)
    columns = program * BLOCK_N + tl.arange(0, BLOCK_N)
    is_inside = columns < N
    rows = tl.arange(0, ROWS)
    has_row = rows < n_rows
    if OVERLAPS:
        gdc_launch_dependents()
    # All that no kernel writes is on its way before anything is known of x.
    k = tl.arange(0, BLOCK_K)
    cells = columns[:, None].to(tl.int64) * K + k[None, :]
    visible = is_inside[:, None] & (k < K)[None, :]
    later = cells
    gates = tl.zeros([BLOCK_N, BLOCK_K], weight.dtype.element_ty)
    if GATED:
        gates = tl.load(weight + cells, mask=visible, other=0)
        later = cells + N.to(tl.int64) * K
    values = tl.load(weight + later, mask=visible, other=0)
    step = tl.zeros([BLOCK_N], tl.float32)
    gate_step = tl.zeros([BLOCK_N], tl.float32)
    if IS_INT8:
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
    place = rows[:, None] * N + columns[None, :]
    in_y = has_row[:, None] & is_inside[None, :]
    before = tl.zeros([ROWS, BLOCK_N], tl.float32)
    if HAS_RESIDUAL:
        before = tl.load(residual + place, mask=in_y, other=0.0).to(tl.float32)
    mean = tl.zeros([ROWS], tl.float32)
    factor = tl.zeros([ROWS], tl.float32)
    if NORM != "none":
        wide = tl.arange(0, WIDTH)
        there = has_row[:, None] & (wide < K)[None, :]
        whole = tl.load(x + rows[:, None] * K + wide[None, :], mask=there, other=0.0)
        whole = whole.to(tl.float32)
        if NORM == "layer":
            mean = tl.sum(whole, 1) / K
            whole = tl.where(there, whole - mean[:, None], 0.0)
        factor = tl.rsqrt(tl.sum(whole * whole, 1) / K + eps)
    out = tl.zeros([ROWS, BLOCK_N], tl.float32)
    left = tl.zeros([ROWS, BLOCK_N], tl.float32)
    for start in tl.static_range(0, K, BLOCK_K):
        k = start + tl.arange(0, BLOCK_K)
        has_k = k < K
        there = has_row[:, None] & has_k[None, :]
        if start > 0:
            visible = is_inside[:, None] & has_k[None, :]
            if GATED:
                gates = tl.load(weight + cells + start, mask=visible, other=0)
            values = tl.load(weight + later + start, mask=visible, other=0)
            if NORM != "none":
                factors = tl.load(norm_weight + k, mask=has_k, other=0.0).to(tl.float32)
            if HAS_NORM_BIAS:
                norm_shift = tl.load(norm_bias + k, mask=has_k, other=0.0).to(tl.float32)
        if SPLITS > 0:
            part = _merge_parts(x, sums, start, n_rows, H, dtype, D, SPLITS, ROWS, BLOCK_K)
            part = part.to(tl.float32)
        else:
            part = tl.load(x + rows[:, None] * K + k[None, :], mask=there, other=0.0)
            part = part.to(tl.float32)
        if NORM != "none":
            part = (part - mean[:, None]) * factor[:, None]
            if NORM == "rms":  # it is rounded before the weight is applied
                part = part.to(dtype).to(tl.float32)
            part = (part * factors[None, :] + norm_shift[None, :]).to(dtype).to(tl.float32)
        if SCALES:
            part = (part * scale).to(dtype).to(tl.float32)
        out += _multiply_rows(values, part, ROWS, ALIKE)
        if GATED:
            left += _multiply_rows(gates, part, ROWS, ALIKE)
    if IS_INT8:
        out = out * step[None, :]
        left = left * gate_step[None, :]
    out = (out + shift[None, :]).to(dtype).to(tl.float32)
    if GATED:
        left = (left + gate_shift[None, :]).to(dtype).to(tl.float32)
        out = _activate(left, ACTIVATION).to(dtype).to(tl.float32) * out
    else:
        out = _activate(out, ACTIVATION)
    if HAS_RESIDUAL:
        out = before + out.to(dtype).to(tl.float32)
    out = out.to(dtype)
    tl.store(y + place, out, mask=in_y)
    if CHOOSES:
        value = out.to(tl.float32)
        value += tl.load(excluded + columns, mask=is_inside, other=float("-inf"))[None, :]
        if FORBIDS:
            cells = (rows // COPIES)[:, None].to(tl.int64) * N + columns[None, :]
            hidden = tl.load(forbidden + cells, mask=in_y, other=0)
            value = tl.where(hidden != 0, float("-inf"), value)
        # NaN is never the largest, so it becomes +∞ with an index that no token has.
        is_nan = in_y & ~(out == out)  # noqa: PLR0124
        value = tl.where(is_nan, float("inf"), value)
        index = tl.where(is_nan, -1, columns[None, :])
        top = tl.max(value, 1)
        first = tl.min(tl.where(value == top[:, None], index, 2147483647), 1)
        place = rows * tl.num_programs(0) + program
        tl.store(best + place, top, mask=has_row)
        tl.store(best_index + place, first, mask=has_row)
