"""The Triton kernel of a pre-norm's backward pass (residual_norm.py says how it is used).

    g = d_y · weight,  z = (x − mean) · rstd
    d_x = d_stream + rstd · (g − mean(g) − z · mean(g z))

A program has ROWS rows, STEP of them at a time, and sums d_y z and d_y over them: the shares of
its rows in the gradients of weight and bias. With STAGES, the next rows are read while these are
computed.
"""

# pyright: reportArgumentType=false, reportAttributeAccessIssue=false, reportCallIssue=false
# pyright: reportIndexIssue=false, reportOperatorIssue=false

from typing import no_type_check

import triton
import triton.language as tl


@no_type_check
@triton.jit
def _add_pairs(a, b, c, d):
    return a + c, b + d


@no_type_check
@triton.jit
def residual_norm_backward_kernel(
    d_stream,
    d_y,
    x,
    mean,
    rstd,
    weight,
    d_x,
    sums,  # (programs, 2, width)
    n_rows,
    width,
    ROWS: tl.constexpr,
    STEP: tl.constexpr,
    COLUMNS: tl.constexpr,
    STAGES: tl.constexpr,
):
    columns = tl.arange(0, COLUMNS)
    is_column = columns < width
    w = tl.load(weight + columns, mask=is_column, other=0.0).to(tl.float32)[None, :]
    d_weight = tl.zeros((STEP, COLUMNS), tl.float32)
    d_bias = tl.zeros((STEP, COLUMNS), tl.float32)
    first = tl.program_id(0).to(tl.int64) * ROWS
    for start in tl.range(0, ROWS, STEP, num_stages=STAGES):
        rows = first + start + tl.arange(0, STEP)
        is_row = rows < n_rows
        cells = rows[:, None] * width + columns[None, :]
        inside = is_row[:, None] & is_column[None, :]
        center = tl.load(mean + rows, mask=is_row, other=0.0).to(tl.float32)[:, None]
        size = tl.load(rstd + rows, mask=is_row, other=0.0).to(tl.float32)[:, None]
        above = tl.load(d_y + cells, mask=inside, other=0.0).to(tl.float32)
        value = tl.load(x + cells, mask=inside, other=0.0).to(tl.float32)
        beside = tl.load(d_stream + cells, mask=inside, other=0.0).to(tl.float32)
        z = (value - center) * size
        d_weight += above * z
        d_bias += above
        g = above * w
        shift, slope = tl.reduce((g, g * z), 1, _add_pairs)
        change = size * (g - shift[:, None] / width - z * (slope[:, None] / width))
        tl.store(d_x + cells, (beside + change).to(d_x.dtype.element_ty), mask=inside)
    places = sums + tl.program_id(0).to(tl.int64) * 2 * width + columns
    tl.store(places, tl.sum(d_weight, 0), mask=is_column)
    tl.store(places + width, tl.sum(d_bias, 0), mask=is_column)
