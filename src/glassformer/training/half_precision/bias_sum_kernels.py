"""The Triton kernels that sum gradients for a bias while they write them (bias_sums.py says why).

A program has a tile of ROWS rows and COLUMNS columns. What it sums are the numbers before they are
rounded. Where a tile has STEPs of rows, the next are read while these are computed.
"""

# pyright: reportArgumentType=false, reportAttributeAccessIssue=false, reportCallIssue=false
# pyright: reportIndexIssue=false, reportOperatorIssue=false

from typing import no_type_check

import triton
import triton.language as tl

from glassformer.training.half_precision.gelu_kernels import distribute


@no_type_check
@triton.jit
def _find_tile(n_rows, n_columns, ROWS: tl.constexpr, COLUMNS: tl.constexpr):
    """The rows and columns of this program's tile, and which of them the matrix has."""
    rows = tl.program_id(1).to(tl.int64) * ROWS + tl.arange(0, ROWS)
    columns = tl.program_id(0) * COLUMNS + tl.arange(0, COLUMNS)
    return rows, columns, (rows < n_rows)[:, None] & (columns < n_columns)[None, :]


@no_type_check
@triton.jit
def _store_sums(sums, values, columns, n_columns, width):
    places = sums + tl.program_id(1).to(tl.int64) * width + columns
    tl.store(places, tl.sum(values, 0), mask=columns < n_columns)


@no_type_check
@triton.jit
def biased_gelu_kernel(x, bias, y, n_rows, n_columns, ROWS: tl.constexpr, COLUMNS: tl.constexpr):
    rows, columns, inside = _find_tile(n_rows, n_columns, ROWS, COLUMNS)
    cells = rows[:, None] * n_columns + columns[None, :]
    value = tl.load(x + cells, mask=inside, other=0.0).to(tl.float32)
    value += tl.load(bias + columns, mask=columns < n_columns, other=0.0).to(tl.float32)[None, :]
    share, _ = distribute(value)
    tl.store(y + cells, (value * share).to(y.dtype.element_ty), mask=inside)


@no_type_check
@triton.jit
def biased_gelu_backward_kernel(
    x,
    bias,
    gradient,
    out,
    sums,
    n_rows,
    n_columns,
    ROWS: tl.constexpr,
    STEP: tl.constexpr,
    COLUMNS: tl.constexpr,
    STAGES: tl.constexpr,
):
    columns = tl.program_id(0) * COLUMNS + tl.arange(0, COLUMNS)
    is_column = columns < n_columns
    shift = tl.load(bias + columns, mask=is_column, other=0.0).to(tl.float32)[None, :]
    total = tl.zeros((STEP, COLUMNS), tl.float32)
    first = tl.program_id(1).to(tl.int64) * ROWS
    for start in tl.range(0, ROWS, STEP, num_stages=STAGES):
        rows = first + start + tl.arange(0, STEP)
        inside = (rows < n_rows)[:, None] & is_column[None, :]
        cells = rows[:, None] * n_columns + columns[None, :]
        value = tl.load(x + cells, mask=inside, other=0.0).to(tl.float32) + shift
        above = tl.load(gradient + cells, mask=inside, other=0.0).to(tl.float32)
        share, bell = distribute(value)
        slope = above * (share + value * bell * 0.3989422804014327)  # of Φ(x) + x φ(x)
        tl.store(out + cells, slope.to(out.dtype.element_ty), mask=inside)
        total += slope
    _store_sums(sums, total, columns, n_columns, n_columns)


@no_type_check
@triton.jit
def join_kernel(
    x,
    out,
    sums,
    n_rows,
    n_columns,
    L,
    width,
    x_batch,
    x_row,
    x_head,
    x_column,
    D: tl.constexpr,
    ROWS: tl.constexpr,
    COLUMNS: tl.constexpr,
):
    """Heads (B, L, H, D), wherever they lie, to columns of a matrix of rows that are `width`."""
    rows, columns, inside = _find_tile(n_rows, n_columns, ROWS, COLUMNS)
    from_rows = x + (rows // L) * x_batch + (rows % L) * x_row
    from_columns = (columns // D) * x_head + (columns % D) * x_column
    value = tl.load(from_rows[:, None] + from_columns[None, :], mask=inside, other=0.0)
    tl.store(out + rows[:, None] * width + columns[None, :], value, mask=inside)
    _store_sums(sums, value.to(tl.float32), columns, n_columns, width)
