"""Triton kernels of a decoding step: attention over the memory, norms, the choice of a token.

A step of a few rows is bound by reading weights and by the number of kernels, so each kernel does
all that lies between two exchanges of data among the processors of the GPU:

    multiply_kernel   norm ─ product ─ bias ─ activation, or product ─ bias ─ residual
                      (product_kernels.py)
    attend_kernel     norm of heads ─ rotate ─ keep k, v ─ attention over a part of the keys
    merge_kernel      the parts of attention ─ one output
    largest_kernel    the largest logit of each block of the vocabulary
    choose_kernel     the largest of all ─ token

Numbers are rounded where the modules round them, and summed in float32. With OVERLAPS, a kernel
starts while the one before it still runs, asks for what no kernel of this step writes (weights,
earlier keys and values), and waits for the end of the other before it reads anything else.
embed_kernel lets no other start before the step before has ended.

Only cuda_step.py imports these files, and only when needed, because they import triton.
"""

# pyright: reportArgumentType=false, reportAttributeAccessIssue=false, reportCallIssue=false
# pyright: reportIndexIssue=false, reportOperatorIssue=false

from typing import no_type_check

import triton
import triton.language as tl
from triton.language.extra.cuda import gdc_launch_dependents, gdc_wait

from glassformer.functional.quantized.gpu_kernels import widen
from glassformer.generation.prefetch_kernels import prefetch_sectors

_NOTHING = tl.constexpr(-1e30)  # the logarithm of weight 0: its exp is 0, and 0 times it too


@no_type_check
@triton.jit
def read_head(heads, weight, cells, partners, d, inside, eps, D, NORMS: tl.constexpr):
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
def _prefetch_keys(
    past,
    begin,
    end,
    memory_slot,
    D: tl.constexpr,
    KV: tl.constexpr,
    WIDTH: tl.constexpr,
    BLOCK: tl.constexpr,
):
    """Prefetch the keys and values of the slots from `begin` to `end`."""
    PER_SECTOR: tl.constexpr = 256 // past.dtype.element_ty.primitive_bitwidth
    d = tl.arange(0, WIDTH // PER_SECTOR) * PER_SECTOR
    for start in range(begin, end, BLOCK):
        slots = start + tl.arange(0, BLOCK)
        inside = (slots < end)[:, None] & (d < D)[None, :]
        cells = past + (slots[:, None].to(tl.int64) * memory_slot + d[None, :])
        prefetch_sectors(cells, inside)
        prefetch_sectors(cells + KV * D, inside)


@no_type_check
@triton.jit
def attend_kernel(  # noqa: PLR0912, PLR0915  (a kernel is one function)
    heads,
    memory,
    cos,
    sin,
    q_weight,
    k_weight,
    lengths,
    missing,
    origins,
    out,
    sums,
    eps,
    scale,
    memory_row,
    memory_slot,
    capacity,
    H,
    window,
    D: tl.constexpr,
    KV: tl.constexpr,
    GROUP: tl.constexpr,
    SPLITS: tl.constexpr,
    COPIES: tl.constexpr,
    IS_SELF: tl.constexpr,
    FOLLOWS: tl.constexpr,
    ROTATES: tl.constexpr,
    LAYOUT: tl.constexpr,
    NORMS: tl.constexpr,
    PRECISION: tl.constexpr,
    DOTS: tl.constexpr,
    OVERLAPS: tl.constexpr,
    WIDTH: tl.constexpr,
    ROWS: tl.constexpr,
    BLOCK: tl.constexpr,
):
    """One part of the keys of a sequence for the GROUP query heads that share them.

    Self-attention adds the new key and value, which part 0 also writes into the memory. With
    FOLLOWS, a slot lies in the row that `origins` names; COPIES rows share one of the memory.
    DOTS: by the matrix units, which want at least 16 ROWS; otherwise product by product.
    """
    if OVERLAPS:
        gdc_launch_dependents()
    dtype = memory.dtype.element_ty
    part = tl.program_id(0) % SPLITS
    kv = (tl.program_id(0) // SPLITS) % KV
    b = tl.program_id(0) // (SPLITS * KV)
    g, d = tl.arange(0, ROWS), tl.arange(0, WIDTH)
    # Past the first level of cache, which may hold the length of the step before.
    length = tl.load(lengths + b // COPIES, cache_modifier=".cg")
    hidden = tl.load(missing + b // COPIES, cache_modifier=".cg")
    if ROTATES:
        place = (length - hidden).to(tl.int64) * D + d
        c = tl.load(cos + place, mask=d < D, other=0.0)[None, :]
        s = tl.load(sin + place, mask=d < D, other=0.0)[None, :]
    first = tl.maximum(hidden, length + 1 - window)
    size = tl.cdiv(tl.cdiv(length - first, SPLITS), BLOCK) * BLOCK
    begin = first + part * size
    end = tl.minimum(length, begin + size)
    past = memory + (b // COPIES).to(tl.int64) * memory_row + kv * D
    if OVERLAPS:
        _prefetch_keys(past, begin, end, memory_slot, D, KV, WIDTH, BLOCK)
        gdc_wait()
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
    q, q_twin = read_head(
        base, q_weight, rows + d[None, :], rows + twin[None, :], (d, twin), inside, eps, D, NORMS
    )
    if ROTATES:
        q = q * c + q_twin * s
    q = q.to(dtype)
    top = tl.full([ROWS], _NOTHING, tl.float32)
    total = tl.zeros([ROWS], tl.float32)
    mean = tl.zeros([ROWS, WIDTH], tl.float32)
    if IS_SELF and part == 0:
        one = tl.arange(0, 1)
        has = (one == 0)[:, None] & (d < D)[None, :]
        at = (H + kv + one)[:, None] * D
        k, k_twin = read_head(
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
    for start in range(begin, end, BLOCK):
        slots = start + tl.arange(0, BLOCK)
        is_there = slots < end
        cells = slots[:, None].to(tl.int64) * memory_slot + d[None, :]
        if FOLLOWS:
            row = tl.load(origins + b.to(tl.int64) * capacity + slots, mask=is_there, other=0)
            cells += (row - b).to(tl.int64)[:, None] * memory_row
        visible = is_there[:, None] & (d < D)[None, :]
        k = tl.load(past + cells, mask=visible, other=0.0)
        v = tl.load(past + KV * D + cells, mask=visible, other=0.0)
        if DOTS:
            scores = tl.dot(q, tl.trans(k), input_precision=PRECISION) * scale
        else:
            products = q.to(tl.float32)[:, None, :] * k.to(tl.float32)[None, :, :]
            scores = tl.sum(products, 2) * scale
        scores = tl.where(is_there[None, :], scores, _NOTHING)
        higher = tl.maximum(top, tl.max(scores, 1))
        shrink = tl.exp(top - higher)
        weights = tl.where(is_there[None, :], tl.exp(scores - higher[:, None]), 0.0)
        mean = mean * shrink[:, None]
        if DOTS:
            mean += tl.dot(weights.to(dtype), v, input_precision=PRECISION)
        else:
            rounded = weights.to(dtype).to(tl.float32)
            mean += tl.sum(rounded[:, :, None] * v.to(tl.float32)[None, :, :], 1)
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
    first = tl.program_id(0) * SPLITS
    d = tl.arange(0, WIDTH)
    highest = tl.load(sums + first * 2)
    for part in tl.static_range(1, SPLITS):
        highest = tl.maximum(highest, tl.load(sums + (first + part) * 2))
    total = 0.0
    mean = tl.zeros([WIDTH], tl.float32)
    for part in tl.static_range(SPLITS):
        cell = first + part
        value = tl.load(parts + cell * D + d, mask=d < D, other=0.0)
        share = tl.exp(tl.load(sums + cell * 2) - highest)
        total += share * tl.load(sums + cell * 2 + 1)
        mean += share * value
    place = tl.program_id(0) * D + d
    tl.store(out + place, (mean / total).to(out.dtype.element_ty), mask=d < D)


@no_type_check
@triton.jit
def largest_kernel(
    logits,
    excluded,
    forbidden,
    best,
    best_index,
    V,
    stride,
    COPIES: tl.constexpr,
    FORBIDS: tl.constexpr,
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
    if FORBIDS:
        row = (b // COPIES).to(tl.int64) * V
        hidden = tl.load(forbidden + row + columns, mask=inside, other=0)
        value = tl.where(hidden != 0, float("-inf"), value)
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
    """One row: the token with the largest logit (the first of equals) becomes the next to read.

    It is −1 where a logit is NaN, and −2 where no token is left.
    """
    if OVERLAPS:
        gdc_launch_dependents()
        gdc_wait()
    b = tl.program_id(0)
    part = tl.arange(0, PARTS)
    value = tl.load(best + b * n_parts + part, mask=part < n_parts, other=float("-inf"))
    index = tl.load(best_index + b * n_parts + part, mask=part < n_parts, other=2147483647)
    top = tl.max(value, 0)
    token = tl.min(tl.where(value == top, index, 2147483647), 0)
    token = tl.where(top == float("-inf"), -2, token)
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
    row_scale,
    added,
    x,
    scale,
    C,
    ADDS: tl.constexpr,
    HAS_SCALES: tl.constexpr,
    OVERLAPS: tl.constexpr,
    WIDTH: tl.constexpr,
):
    """One row: the token's vector, and its position's where positions are added."""
    if OVERLAPS:
        gdc_wait()
        gdc_launch_dependents()
    b = tl.program_id(0)
    c = tl.arange(0, WIDTH)
    dtype = x.dtype.element_ty
    token = tl.load(tokens + b)
    vector = widen(tl.load(embedding + token * C + c, mask=c < C, other=0.0))
    if HAS_SCALES:
        vector = (vector * tl.load(row_scale + token)).to(dtype).to(tl.float32)
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
