"""The Triton kernel behind the loss on CUDA: one program per row of logits.

    pass 1   maximum and Σ exp, block by block, in float32       → loss of the row
    pass 2   softmax − target, written over the logits           → gradient

A row is still in the GPU's cache when the second pass reads it. Only chunked_loss imports this
file, and only when needed, because this file imports triton.
"""

# pyright: reportArgumentType=false, reportAttributeAccessIssue=false, reportCallIssue=false
# pyright: reportIndexIssue=false, reportOperatorIssue=false

from typing import no_type_check

import triton
import triton.language as tl


@no_type_check
@triton.jit
def loss_kernel(
    logits,
    targets,
    losses,
    row_stride,
    V,
    padded,  # ≥ V: columns beyond V are no tokens
    smoothing,
    LEARNS: tl.constexpr,
    IGNORED: tl.constexpr,
    BLOCK: tl.constexpr,
):
    row = tl.program_id(0).to(tl.int64)
    start = logits + row * row_stride
    target = tl.load(targets + row)
    columns = tl.arange(0, BLOCK)
    if target == IGNORED:
        tl.store(losses + row, 0.0)
        if LEARNS:
            zeros = tl.zeros([BLOCK], dtype=logits.dtype.element_ty)
            for first in range(0, padded, BLOCK):
                tl.store(start + first + columns, zeros, mask=first + columns < padded)
        return
    largest = tl.full([BLOCK], float("-inf"), tl.float32)
    mass = tl.zeros([BLOCK], dtype=tl.float32)
    total = tl.zeros([BLOCK], dtype=tl.float32)
    for first in range(0, padded, BLOCK):
        inside = first + columns < V
        x = tl.load(start + first + columns, mask=inside, other=float("-inf")).to(tl.float32)
        larger = tl.maximum(largest, x)
        # A lane that has seen nothing but −∞ has no mass; its difference would be NaN.
        shift = tl.where(larger == float("-inf"), 0.0, larger)
        mass = mass * tl.exp(largest - shift) + tl.exp(x - shift)
        largest = larger
        total += tl.where(inside, x, 0.0)
    peak = tl.max(largest, 0)
    lse = peak + tl.log(tl.sum(mass * tl.exp(largest - peak), 0))
    wanted = tl.load(start + target).to(tl.float32)
    loss = (1.0 - smoothing) * (lse - wanted) + smoothing * (lse - tl.sum(total, 0) / V)
    tl.store(losses + row, loss)
    if LEARNS:
        # Every thread must have read the target's logit before one of them overwrites it.
        tl.debug_barrier()
        for first in range(0, padded, BLOCK):
            inside = first + columns < V
            x = tl.load(start + first + columns, mask=inside, other=float("-inf")).to(tl.float32)
            gradient = tl.exp(x - lse) - smoothing / V
            gradient -= tl.where(first + columns == target, 1.0 - smoothing, 0.0)
            gradient = tl.where(inside, gradient, 0.0).to(logits.dtype.element_ty)
            tl.store(start + first + columns, gradient, mask=first + columns < padded)
