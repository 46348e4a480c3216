"""Triton kernels of a decoding step: products with a few rows, attention over the memory, choice.

A step of a few rows is bound by reading weights and by the number of kernels, so each kernel does
all that lies between two exchanges of data among the processors of the GPU:

    multiply_kernel   norm ─ product ─ bias ─ activation, or product ─ bias ─ residual
    attend_kernel     norm of heads ─ rotate ─ keep k, v ─ attention over a part of the keys
    merge_kernel      the parts of attention ─ one output
    largest_kernel    the largest logit of each block of the vocabulary
    choose_kernel     the largest of all ─ token

Numbers are rounded where the modules round them, and summed in float32. With OVERLAPS, a kernel
starts while the one before it still runs, loads what no kernel writes (weights), and waits for the
end of the other before it reads anything else.

Only cuda_step.py imports this file, and only when needed, because this file imports triton.
"""

# pyright: reportArgumentType=false, reportAttributeAccessIssue=false, reportCallIssue=false
# pyright: reportIndexIssue=false, reportOperatorIssue=false

from typing import no_type_check

import triton
import triton.language as tl
from triton.language.extra.cuda import gdc_launch_dependents, gdc_wait

_NOTHING = tl.constexpr(-1e30)  # the logarithm of weight 0: its exp is 0, and 0 times it too


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
def _merge_parts(parts, sums, rows, k, inside, H, D: tl.constexpr, SPLITS: tl.constexpr):
    """Columns k of the heads' outputs: the weighted mean of what parts of the keys gave."""
    first = (rows[:, None] * H + k[None, :] // D) * SPLITS
    highest = tl.load(sums + first * 2, mask=inside, other=0.0)
    for i in tl.static_range(1, SPLITS):
        highest = tl.maximum(highest, tl.load(sums + (first + i) * 2, mask=inside, other=0.0))
    total = tl.zeros_like(highest)
    mean = tl.zeros_like(highest)
    for i in tl.static_range(SPLITS):
        cell = first + i
        share = tl.exp(tl.load(sums + cell * 2, mask=inside, other=0.0) - highest)
        total += share * tl.load(sums + cell * 2 + 1, mask=inside, other=1.0)
        mean += share * tl.load(parts + cell * D + k[None, :] % D, mask=inside, other=0.0)
    return mean / total


@no_type_check
@triton.jit
def _multiply_rows(values, part, ROWS: tl.constexpr):
    """part valuesᵀ in float32: (ROWS, k) by (n, k)."""
    if ROWS == 1:  # two dimensions need no exchange among the threads
        return tl.sum(values.to(tl.float32) * tl.sum(part, 0)[None, :], 1)[None, :]
    return tl.sum(values.to(tl.float32)[None, :, :] * part[:, None, :], 2)


@no_type_check
@triton.jit
def multiply_kernel(  # noqa: PLR0912, PLR0915  (a kernel is one function)
    x,
    y,
    weight,
    bias,
    norm_weight,
    norm_bias,
    residual,
    sums,
    best,
    best_index,
    excluded,
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
    SCALES: tl.constexpr,
    HAS_BIAS: tl.constexpr,
    HAS_NORM_BIAS: tl.constexpr,
    HAS_RESIDUAL: tl.constexpr,
    CHOOSES: tl.constexpr,
    OVERLAPS: tl.constexpr,
    ROWS: tl.constexpr,
    WIDTH: tl.constexpr,
    BLOCK_N: tl.constexpr,
    BLOCK_K: tl.constexpr,
):
    """y = f(norm(x) Wᵀ + b) + residual for BLOCK_N columns of y, and perhaps their largest.

    With SPLITS > 0, x are the parts that attend_kernel left.
    """
    dtype = weight.dtype.element_ty
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
    gates = tl.zeros([BLOCK_N, BLOCK_K], dtype)
    if GATED:
        gates = tl.load(weight + cells, mask=visible, other=0.0)
        later = cells + N.to(tl.int64) * K
    values = tl.load(weight + later, mask=visible, other=0.0)
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
                gates = tl.load(weight + cells + start, mask=visible, other=0.0)
            values = tl.load(weight + later + start, mask=visible, other=0.0)
            if NORM != "none":
                factors = tl.load(norm_weight + k, mask=has_k, other=0.0).to(tl.float32)
            if HAS_NORM_BIAS:
                norm_shift = tl.load(norm_bias + k, mask=has_k, other=0.0).to(tl.float32)
        if SPLITS > 0:
            part = _merge_parts(x, sums, rows, k, there, H, D, SPLITS).to(dtype).to(tl.float32)
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
        out += _multiply_rows(values, part, ROWS)
        if GATED:
            left += _multiply_rows(gates, part, ROWS)
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
        # NaN is never the largest, so it becomes +∞ with an index that no token has.
        is_nan = in_y & ~(out == out)  # noqa: PLR0124
        value = tl.where(is_nan, float("inf"), value)
        index = tl.where(is_nan, -1, columns[None, :])
        top = tl.max(value, 1)
        first = tl.min(tl.where(value == top[:, None], index, 2147483647), 1)
        place = rows * tl.num_programs(0) + program
        tl.store(best + place, top, mask=has_row)
        tl.store(best_index + place, first, mask=has_row)


@no_type_check
@triton.jit
def _read_head(heads, weight, cells, partners, d, inside, eps, D, NORMS: tl.constexpr):
    """Rows of heads and of their rotation partners in float32, after the norm of heads."""
    dtype = heads.dtype.element_ty
    x = tl.load(heads + cells, mask=inside, other=0.0).to(tl.float32)
    twin = tl.load(heads + partners, mask=inside, other=0.0).to(tl.float32)
    if NORMS:
        factor = tl.rsqrt(tl.sum(x * x, 1) / D + eps)[:, None]
        own, other = d[0], d[1]
        has = own < D
        w = tl.load(weight + own, mask=has, other=0.0).to(tl.float32)[None, :]
        w_twin = tl.load(weight + other, mask=has, other=0.0).to(tl.float32)[None, :]
        x = ((x * factor).to(dtype).to(tl.float32) * w).to(dtype).to(tl.float32)
        twin = ((twin * factor).to(dtype).to(tl.float32) * w_twin).to(dtype).to(tl.float32)
    return x, twin


@no_type_check
@triton.jit
def attend_kernel(  # noqa: PLR0915  (a kernel is one function)
    heads,
    memory,
    cos,
    sin,
    q_weight,
    k_weight,
    lengths,
    missing,
    out,
    sums,
    eps,
    scale,
    memory_row,
    memory_slot,
    H,
    window,
    D: tl.constexpr,
    KV: tl.constexpr,
    GROUP: tl.constexpr,
    SPLITS: tl.constexpr,
    IS_SELF: tl.constexpr,
    ROTATES: tl.constexpr,
    LAYOUT: tl.constexpr,
    NORMS: tl.constexpr,
    PRECISION: tl.constexpr,
    OVERLAPS: tl.constexpr,
    WIDTH: tl.constexpr,
    ROWS: tl.constexpr,
    BLOCK: tl.constexpr,
):
    """One part of the keys of a sequence for the GROUP query heads that share them.

    Self-attention adds the new key and value, which part 0 also writes into the memory.
    """
    if OVERLAPS:
        gdc_launch_dependents()
        gdc_wait()
    dtype = memory.dtype.element_ty
    part = tl.program_id(0) % SPLITS
    kv = (tl.program_id(0) // SPLITS) % KV
    b = tl.program_id(0) // (SPLITS * KV)
    g, d = tl.arange(0, ROWS), tl.arange(0, WIDTH)
    if LAYOUT == "half":  # noqa: SIM108  (the compiler knows only this form)
        twin = tl.where(d < D // 2, d + D // 2, d - D // 2)
    else:
        twin = d ^ 1
    n_heads = H
    if IS_SELF:
        n_heads = H + 2 * KV
    base = heads + b.to(tl.int64) * n_heads * D
    inside = (g < GROUP)[:, None] & (d < D)[None, :]
    rows = (kv * GROUP + g)[:, None] * D
    q, q_twin = _read_head(
        base, q_weight, rows + d[None, :], rows + twin[None, :], (d, twin), inside, eps, D, NORMS
    )
    length = tl.load(lengths + b)
    hidden = tl.load(missing + b)
    if ROTATES:
        place = (length - hidden).to(tl.int64) * D + d
        c = tl.load(cos + place, mask=d < D, other=0.0)[None, :]
        s = tl.load(sin + place, mask=d < D, other=0.0)[None, :]
        q = q * c + q_twin * s
    q = q.to(dtype)
    first = tl.maximum(hidden, length + 1 - window)
    top = tl.full([ROWS], _NOTHING, tl.float32)
    total = tl.zeros([ROWS], tl.float32)
    mean = tl.zeros([ROWS, WIDTH], tl.float32)
    past = memory + b.to(tl.int64) * memory_row + kv * D
    if IS_SELF and part == 0:
        one = tl.arange(0, 1)
        has = (one == 0)[:, None] & (d < D)[None, :]
        at = (H + kv + one)[:, None] * D
        k, k_twin = _read_head(
            base, k_weight, at + d[None, :], at + twin[None, :], (d, twin), has, eps, D, NORMS
        )
        if ROTATES:
            k = k * c + k_twin * s
        k = k.to(dtype)
        v = tl.load(base + (H + KV + kv + one)[:, None] * D + d[None, :], mask=has, other=0.0)
        slot = past + length.to(tl.int64) * memory_slot
        tl.store(slot + one[:, None] + d[None, :], k, mask=has)
        tl.store(slot + KV * D + one[:, None] + d[None, :], v, mask=has)
        top = tl.sum(q.to(tl.float32) * k.to(tl.float32), 1) * scale
        total += 1.0
        mean += v.to(tl.float32)
    size = tl.cdiv(tl.cdiv(length - first, SPLITS), BLOCK) * BLOCK
    begin = first + part * size
    end = tl.minimum(length, begin + size)
    for start in range(begin, end, BLOCK):
        slots = start + tl.arange(0, BLOCK)
        is_there = slots < end
        cells = slots[:, None].to(tl.int64) * memory_slot + d[None, :]
        visible = is_there[:, None] & (d < D)[None, :]
        k = tl.load(past + cells, mask=visible, other=0.0)
        v = tl.load(past + KV * D + cells, mask=visible, other=0.0)
        scores = tl.dot(q, tl.trans(k), input_precision=PRECISION) * scale
        scores = tl.where(is_there[None, :], scores, _NOTHING)
        higher = tl.maximum(top, tl.max(scores, 1))
        shrink = tl.exp(top - higher)
        weights = tl.where(is_there[None, :], tl.exp(scores - higher[:, None]), 0.0)
        mean = mean * shrink[:, None]
        mean += tl.dot(weights.to(dtype), v, input_precision=PRECISION)
        total = total * shrink + tl.sum(weights, 1)
        top = higher
    query = b * H + kv * GROUP + g
    if SPLITS == 1:
        mean = mean / total[:, None]
        tl.store(out + query[:, None] * D + d[None, :], mean.to(out.dtype.element_ty), mask=inside)
    else:
        cell = query * SPLITS + part
        tl.store(out + cell[:, None] * D + d[None, :], mean, mask=inside)
        tl.store(sums + cell * 2, top, mask=g < GROUP)
        tl.store(sums + cell * 2 + 1, total, mask=g < GROUP)


@no_type_check
@triton.jit
def merge_kernel(
    parts,
    sums,
    out,
    D: tl.constexpr,
    SPLITS: tl.constexpr,
    OVERLAPS: tl.constexpr,
    WIDTH: tl.constexpr,
):
    """One head: the weighted mean of what its parts of the keys gave."""
    if OVERLAPS:
        gdc_launch_dependents()
        gdc_wait()
    head = tl.program_id(0)
    i, d = tl.arange(0, SPLITS), tl.arange(0, WIDTH)
    cell = head * SPLITS + i
    top = tl.load(sums + cell * 2)
    share = tl.exp(top - tl.max(top, 0))
    total = tl.sum(share * tl.load(sums + cell * 2 + 1), 0)
    inside = (i >= 0)[:, None] & (d < D)[None, :]
    means = tl.load(parts + cell[:, None] * D + d[None, :], mask=inside, other=0.0)
    mean = tl.sum(means * share[:, None], 0) / total
    tl.store(out + head * D + d, mean.to(out.dtype.element_ty), mask=d < D)


@no_type_check
@triton.jit
def largest_kernel(
    logits,
    excluded,
    best,
    best_index,
    V,
    stride,
    OVERLAPS: tl.constexpr,
    BLOCK: tl.constexpr,
):
    """One row, one block of the vocabulary: the largest logit, and the first token that has it."""
    if OVERLAPS:
        gdc_launch_dependents()
        gdc_wait()
    block, b = tl.program_id(0), tl.program_id(1)
    columns = block * BLOCK + tl.arange(0, BLOCK)
    inside = columns < V
    value = tl.load(logits + b.to(tl.int64) * stride + columns, mask=inside, other=float("-inf"))
    value = value.to(tl.float32)
    is_nan = inside & ~(value == value)  # noqa: PLR0124
    value += tl.load(excluded + columns, mask=inside, other=0.0)
    value = tl.where(is_nan, float("inf"), value)
    top = tl.max(value, 0)
    first = tl.min(tl.where(value == top, tl.where(is_nan, -1, columns), 2147483647), 0)
    place = b * tl.num_programs(0) + block
    tl.store(best + place, top)
    tl.store(best_index + place, first)


@no_type_check
@triton.jit
def choose_kernel(
    best,
    best_index,
    tokens,
    lengths,
    written,
    batch,
    n_parts,
    OVERLAPS: tl.constexpr,
    PARTS: tl.constexpr,
):
    """One row: the token with the largest logit (the first of equals) becomes the next to read."""
    if OVERLAPS:
        gdc_launch_dependents()
        gdc_wait()
    b = tl.program_id(0)
    part = tl.arange(0, PARTS)
    value = tl.load(best + b * n_parts + part, mask=part < n_parts, other=float("-inf"))
    index = tl.load(best_index + b * n_parts + part, mask=part < n_parts, other=2147483647)
    token = tl.min(tl.where(value == tl.max(value, 0), index, 2147483647), 0)
    length = tl.load(lengths + b) + 1
    tl.store(written + length * batch + b, token)
    tl.store(tokens + b, tl.maximum(token, 0))
    tl.store(lengths + b, length)


@no_type_check
@triton.jit
def embed_kernel(
    tokens,
    lengths,
    missing,
    embedding,
    added,
    x,
    scale,
    C,
    ADDS: tl.constexpr,
    OVERLAPS: tl.constexpr,
    WIDTH: tl.constexpr,
):
    """One row: the token's vector, and its position's where positions are added."""
    if OVERLAPS:
        gdc_launch_dependents()
        gdc_wait()
    b = tl.program_id(0)
    c = tl.arange(0, WIDTH)
    dtype = embedding.dtype.element_ty
    token = tl.load(tokens + b)
    vector = tl.load(embedding + token * C + c, mask=c < C, other=0.0).to(tl.float32)
    vector = (vector * scale).to(dtype).to(tl.float32)
    if ADDS:
        place = (tl.load(lengths + b) - tl.load(missing + b)).to(tl.int64)
        vector += tl.load(added + place * C + c, mask=c < C, other=0.0).to(tl.float32)
    tl.store(x + b * C + c, vector.to(dtype), mask=c < C)


@no_type_check
@triton.jit
def normalize_kernel(
    x,
    update,
    y,
    weight,
    bias,
    eps,
    C,
    NORM: tl.constexpr,
    HAS_UPDATE: tl.constexpr,
    HAS_BIAS: tl.constexpr,
    KEEPS: tl.constexpr,
    OVERLAPS: tl.constexpr,
    WIDTH: tl.constexpr,
):
    """One row: x += update, then y = norm(x); KEEPS writes the sum back into x."""
    if OVERLAPS:
        gdc_launch_dependents()
        gdc_wait()
    dtype = x.dtype.element_ty
    row = tl.program_id(0).to(tl.int64) * C
    c = tl.arange(0, WIDTH)
    has = c < C
    value = tl.load(x + row + c, mask=has, other=0.0).to(tl.float32)
    if HAS_UPDATE:
        value += tl.load(update + row + c, mask=has, other=0.0).to(tl.float32)
        value = value.to(dtype).to(tl.float32)
        if KEEPS:
            tl.store(x + row + c, value.to(dtype), mask=has)
    factors = tl.load(weight + c, mask=has, other=0.0).to(tl.float32)
    if NORM == "layer":
        value = tl.where(has, value - tl.sum(value, 0) / C, 0.0)
    value = value * tl.rsqrt(tl.sum(value * value, 0) / C + eps)
    if NORM == "rms":
        value = value.to(dtype).to(tl.float32)
    value = value * factors
    if HAS_BIAS:
        value += tl.load(bias + c, mask=has, other=0.0).to(tl.float32)
    tl.store(y + row + c, value.to(dtype), mask=has)
