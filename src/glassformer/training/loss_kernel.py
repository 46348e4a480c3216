"""The Triton kernel behind the loss on CUDA: one program per row of logits.

    pass 1   maximum and Σ exp, lane by lane, in float32         → loss of the row
    pass 2   softmax − target, written over the logits           → gradient

Both passes take four blocks at a time: loads of 16 bytes, and one exponential per logit and a
quarter more for the change of the maximum. Columns are read up to `padded`, whose alignment the
compiler knows, and those beyond V do not count. This file is imported only when needed, because it
imports triton.
"""

# pyright: reportArgumentType=false, reportAttributeAccessIssue=false, reportCallIssue=false
# pyright: reportIndexIssue=false, reportOperatorIssue=false

from typing import no_type_check

import torch
import triton
import triton.language as tl
from torch import Tensor

from glassformer.training.loss import IGNORED

BLOCK = 4096
WARPS = 16
_LOG2_E = tl.constexpr(1.4426950408889634)
_LOWEST = tl.constexpr(-1e30)  # less than a logit, and no NaN when it is subtracted from itself


def measure_rows(
    logits: Tensor,
    targets: Tensor,
    vocab_size: int,
    smoothing: float,
    *,
    learns: bool = False,
    sums: Tensor | None = None,
) -> Tensor:
    """The loss of each row; with `learns` the gradient overwrites the logits.

    `sums` are filled with log₂ Σ exp, for whoever computes the gradient.
    """
    losses = logits.new_empty(len(logits), dtype=torch.float32)
    with torch.cuda.device_of(logits):
        loss_kernel[(len(logits),)](
            logits,
            targets,
            losses,
            losses if sums is None else sums,
            logits.stride(0),
            vocab_size,
            logits.shape[1],
            smoothing,
            LEARNS=learns,
            KEEPS=sums is not None,
            SMOOTHS=smoothing != 0.0,
            IGNORED=IGNORED,
            BLOCK=BLOCK,
            num_warps=WARPS,
        )
    return losses


@no_type_check
@triton.jit
def _read(start, columns, V, padded):
    """Logits in units of log 2, −∞ beyond the vocabulary."""
    x = tl.load(start + columns, mask=columns < padded, other=float("-inf")).to(tl.float32)
    return tl.where(columns < V, x * _LOG2_E, float("-inf"))


@no_type_check
@triton.jit
def _write_gradient(start, columns, lse, rest, V, padded):
    gradient = tl.exp2(_read(start, columns, V, padded) - lse)
    gradient = tl.where(columns < V, gradient - rest, 0.0).to(start.dtype.element_ty)
    tl.store(start + columns, gradient, mask=columns < padded)


@no_type_check
@triton.jit
def loss_kernel(
    logits,
    targets,
    losses,
    sums,
    row_stride,
    V,
    padded,  # ≥ V: columns beyond V are no tokens
    smoothing,
    LEARNS: tl.constexpr,
    KEEPS: tl.constexpr,  # log Σ exp in `sums`
    SMOOTHS: tl.constexpr,
    IGNORED: tl.constexpr,
    BLOCK: tl.constexpr,
):
    row = tl.program_id(0).to(tl.int64)
    start = logits + row * row_stride
    target = tl.load(targets + row)
    lanes = tl.arange(0, BLOCK)
    if target == IGNORED:
        tl.store(losses + row, 0.0)
        if KEEPS:
            tl.store(sums + row, 0.0)
        if LEARNS:
            zeros = tl.zeros([BLOCK], dtype=logits.dtype.element_ty)
            for first in range(0, padded, BLOCK):
                tl.store(start + first + lanes, zeros, mask=first + lanes < padded)
        return
    largest = tl.full([BLOCK], _LOWEST, tl.float32)
    mass = tl.zeros([BLOCK], dtype=tl.float32)
    total = tl.zeros([BLOCK], dtype=tl.float32)
    for first in range(0, padded, 4 * BLOCK):
        columns = first + lanes
        a = _read(start, columns, V, padded)
        b = _read(start, columns + BLOCK, V, padded)
        c = _read(start, columns + 2 * BLOCK, V, padded)
        d = _read(start, columns + 3 * BLOCK, V, padded)
        larger = tl.maximum(tl.maximum(largest, tl.maximum(a, b)), tl.maximum(c, d))
        mass *= tl.exp2(largest - larger)
        mass += tl.exp2(a - larger) + tl.exp2(b - larger)
        mass += tl.exp2(c - larger) + tl.exp2(d - larger)
        largest = larger
        if SMOOTHS:
            total += tl.where(columns < V, a, 0.0)
            total += tl.where(columns + BLOCK < V, b, 0.0)
            total += tl.where(columns + 2 * BLOCK < V, c, 0.0)
            total += tl.where(columns + 3 * BLOCK < V, d, 0.0)
    peak = tl.max(largest, 0)
    lse = peak + tl.log2(tl.sum(mass * tl.exp2(largest - peak), 0))
    wanted = tl.load(start + target).to(tl.float32) * _LOG2_E
    loss = lse - wanted
    rest = 0.0
    if SMOOTHS:
        loss = (1.0 - smoothing) * loss + smoothing * (lse - tl.sum(total, 0) / V)
        rest = smoothing / V
    tl.store(losses + row, loss / _LOG2_E)
    if KEEPS:
        tl.store(sums + row, lse)
    if LEARNS:
        # Every thread must have read the target's logit before one of them overwrites it.
        tl.debug_barrier()
        for first in range(0, padded, 4 * BLOCK):
            columns = first + lanes
            _write_gradient(start, columns, lse, rest, V, padded)
            _write_gradient(start, columns + BLOCK, lse, rest, V, padded)
            _write_gradient(start, columns + 2 * BLOCK, lse, rest, V, padded)
            _write_gradient(start, columns + 3 * BLOCK, lse, rest, V, padded)
        # And all of them must have written before the target's own cell is.
        tl.debug_barrier()
        gradient = tl.exp2(wanted - lse) - rest - (1.0 - smoothing)
        tl.store(start + target, gradient.to(logits.dtype.element_ty))
