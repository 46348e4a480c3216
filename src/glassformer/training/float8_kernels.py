"""The Triton kernels that write matrices of 8 bits (float8_matrices.py says how and why).

    sample_kernel     the largest of some rows                   → one number for each program
    round_kernel      a tile, or GELU or its derivative of it,
                      scaled and rounded                         → the tile, and the tile transposed
    gradient_kernel   a tile of logits: softmax − target         → the same

A tile is read as its rows 0, 4, 8, …, then 1, 5, 9, … and so on: four neighbours of a column, one
from each, are 32 bits of the transposed matrix. They are packed by an instruction of their own:
where single bytes were taken from what is also stored as rows, the compiler of Triton 3.6
returned wrong ones.

They are imported only when needed, because this file imports triton.
"""

# pyright: reportArgumentType=false, reportAttributeAccessIssue=false, reportCallIssue=false
# pyright: reportIndexIssue=false, reportOperatorIssue=false

from typing import no_type_check

import triton
import triton.language as tl

from glassformer.training.half_precision.gelu_kernels import INTERPRETED, distribute

SAMPLERS = 128  # programs
COLUMNS = 1024  # that a sampler reads at once
TILE = 128  # rows and columns
WARPS = 8


@no_type_check
@triton.jit
def sample_kernel(x, largest, n_rows, n_columns, row_step, COLUMNS: tl.constexpr):
    """The largest magnitude in every `row_step`-th row, of this program's share of them."""
    lanes = tl.arange(0, COLUMNS)
    found = tl.zeros([COLUMNS], tl.float32)
    origin = tl.program_id(0).to(tl.int64) * 0  # of 64 bits, for matrices of 2³¹ numbers
    for row in range(tl.program_id(0) * row_step, n_rows, tl.num_programs(0) * row_step):
        start = x + (origin + row) * n_columns
        for first in range(0, n_columns, COLUMNS):
            value = tl.load(start + first + lanes, mask=first + lanes < n_columns, other=0.0)
            found = tl.maximum(found, tl.abs(value.to(tl.float32)))
    tl.store(largest + tl.program_id(0), tl.max(found, 0))


@no_type_check
@triton.jit
def _pack_by_instruction(a, b, c, d, E4M3: tl.constexpr):
    """Four numbers in 32 bits, a in the lowest."""
    if E4M3:
        return tl.inline_asm_elementwise(
            """{.reg .b16 low, high;
            cvt.rn.satfinite.e4m3x2.f32 low, $2, $1;
            cvt.rn.satfinite.e4m3x2.f32 high, $4, $3;
            mov.b32 $0, {low, high};}""",
            "=r,f,f,f,f",
            [a, b, c, d],
            dtype=tl.int32,
            is_pure=True,
            pack=1,
        )
    return tl.inline_asm_elementwise(
        """{.reg .b16 low, high;
        cvt.rn.satfinite.e5m2x2.f32 low, $2, $1;
        cvt.rn.satfinite.e5m2x2.f32 high, $4, $3;
        mov.b32 $0, {low, high};}""",
        "=r,f,f,f,f",
        [a, b, c, d],
        dtype=tl.int32,
        is_pure=True,
        pack=1,
    )


@no_type_check
@triton.jit
def _take_bits(x, KIND: tl.constexpr):
    return x.to(KIND).to(tl.uint8, bitcast=True).to(tl.int32)


@no_type_check
@triton.jit
def _read_quarter(x, rows, columns, n_rows, n_columns):
    inside = (rows < n_rows)[:, None] & (columns < n_columns)[None, :]
    return tl.load(x + rows[:, None] * n_columns + columns[None, :], mask=inside, other=0.0)


@no_type_check
@triton.jit
def _read_tile(x, rows, columns, n_rows, n_columns):
    """All four quarters before anything is computed: many loads are under way at once."""
    return (
        _read_quarter(x, rows, columns, n_rows, n_columns),
        _read_quarter(x, rows + 1, columns, n_rows, n_columns),
        _read_quarter(x, rows + 2, columns, n_rows, n_columns),
        _read_quarter(x, rows + 3, columns, n_rows, n_columns),
    )


@no_type_check
@triton.jit
def _store_tile(
    a, b, c, d, rounded, transposed, down, columns, n_rows, n_columns, TILE: tl.constexpr
):
    """The four quarters in 8 bits, in both orders."""
    fours = down.to(tl.int64) * (TILE // 4) + tl.arange(0, TILE // 4)  # of rows, all in or all out
    KIND: tl.constexpr = rounded.dtype.element_ty
    places = rounded + 4 * fours[:, None] * n_columns + columns[None, :]
    inside = (fours < n_rows // 4)[:, None] & (columns < n_columns)[None, :]
    tl.store(places, a.to(KIND), mask=inside)
    tl.store(places + n_columns, b.to(KIND), mask=inside)
    tl.store(places + 2 * n_columns, c.to(KIND), mask=inside)
    tl.store(places + 3 * n_columns, d.to(KIND), mask=inside)
    if INTERPRETED:
        low = _take_bits(a, KIND) | (_take_bits(b, KIND) << 8)
        four = low | (_take_bits(c, KIND) << 16) | (_take_bits(d, KIND) << 24)
    else:
        four = _pack_by_instruction(a, b, c, d, tl.float8e4nv == KIND)
    places = columns[:, None].to(tl.int64) * (n_rows // 4) + fours[None, :]
    inside = (columns < n_columns)[:, None] & (fours < n_rows // 4)[None, :]
    tl.store(transposed.to(tl.pointer_type(tl.int32)) + places, tl.trans(four), mask=inside)


@no_type_check
@triton.jit
def _compute(x, gradient, KIND: tl.constexpr):
    value = x.to(tl.float32)
    if KIND != "plain":
        share, bell = distribute(value)
        if KIND == "gelu":
            value *= share
        else:
            slope = share + value * bell * 0.3989422804014327  # Φ(x) + x φ(x)
            value = gradient.to(tl.float32) * slope
    return value


@no_type_check
@triton.jit
def _limit(value, factor, MOST: tl.constexpr):
    scaled = value * factor
    if INTERPRETED:  # a GPU's conversion does that
        scaled = tl.where(scaled > MOST, MOST, tl.where(scaled < -MOST, -MOST, scaled))
    return scaled


@no_type_check
@triton.jit
def round_kernel(
    x,
    gradient,
    largest,
    rounded,
    transposed,
    scale,
    sums,
    n_rows,
    n_columns,
    KIND: tl.constexpr,
    GOAL: tl.constexpr,
    MOST: tl.constexpr,
    SUMS: tl.constexpr,
    SAMPLERS: tl.constexpr,
    TILE: tl.constexpr,
):
    down, across = tl.program_id(0), tl.program_id(1)
    rows = down.to(tl.int64) * TILE + 4 * tl.arange(0, TILE // 4)
    columns = across * TILE + tl.arange(0, TILE)
    a, b, c, d = _read_tile(x, rows, columns, n_rows, n_columns)
    e, f, g, h = a, b, c, d
    if KIND == "derivative":
        e, f, g, h = _read_tile(gradient, rows, columns, n_rows, n_columns)
    # The exponent of the largest, as the bits of a float32; 2^(GOAL − exponent) is exact.
    bits = tl.max(tl.load(largest + tl.arange(0, SAMPLERS)), 0).to(tl.int32, bitcast=True) >> 23
    exponent = tl.where(bits == 0, 127 + GOAL, tl.minimum(tl.maximum(bits, GOAL + 1), 253))
    factor = ((254 + GOAL - exponent) << 23).to(tl.float32, bitcast=True)
    if (down == 0) & (across == 0):
        tl.store(scale, ((exponent - GOAL) << 23).to(tl.float32, bitcast=True))
    a, b = _compute(a, e, KIND), _compute(b, f, KIND)
    c, d = _compute(c, g, KIND), _compute(d, h, KIND)
    if SUMS:
        total = tl.sum((a + b) + (c + d), 0)
        tl.store(sums + down * n_columns + columns, total, mask=columns < n_columns)
    a, b = _limit(a, factor, MOST), _limit(b, factor, MOST)
    c, d = _limit(c, factor, MOST), _limit(d, factor, MOST)
    _store_tile(a, b, c, d, rounded, transposed, down, columns, n_rows, n_columns, TILE)


@no_type_check
@triton.jit
def _differentiate(
    x, targets, lse, rows, columns, n_rows, V, smoothing, factor, IGNORED: tl.constexpr
):
    known = tl.load(lse + rows, mask=rows < n_rows, other=0.0)
    target = tl.load(targets + rows, mask=rows < n_rows, other=IGNORED)
    value = tl.exp2(x.to(tl.float32) * 1.4426950408889634 - known[:, None]) - smoothing / V
    value = tl.where(columns[None, :] == target[:, None], value - (1.0 - smoothing), value)
    counts = (target != IGNORED)[:, None] & (columns < V)[None, :]
    return tl.where(counts, value * factor, 0.0)


@no_type_check
@triton.jit
def gradient_kernel(
    logits,
    targets,
    lse,  # of each row, in units of log 2
    rounded,
    transposed,
    n_rows,
    n_columns,
    V,  # ≤ n_columns: what lies beyond is no token
    smoothing,
    factor,
    IGNORED: tl.constexpr,
    TILE: tl.constexpr,
):
    down, across = tl.program_id(0), tl.program_id(1)
    rows = down.to(tl.int64) * TILE + 4 * tl.arange(0, TILE // 4)
    columns = across * TILE + tl.arange(0, TILE)
    a, b, c, d = _read_tile(logits, rows, columns, n_rows, n_columns)
    a = _differentiate(a, targets, lse, rows, columns, n_rows, V, smoothing, factor, IGNORED)
    b = _differentiate(b, targets, lse, rows + 1, columns, n_rows, V, smoothing, factor, IGNORED)
    c = _differentiate(c, targets, lse, rows + 2, columns, n_rows, V, smoothing, factor, IGNORED)
    d = _differentiate(d, targets, lse, rows + 3, columns, n_rows, V, smoothing, factor, IGNORED)
    _store_tile(a, b, c, d, rounded, transposed, down, columns, n_rows, n_columns, TILE)
