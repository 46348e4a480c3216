"""Cross-entropy of an output layer whose three products have operands of 8 bits.

The same work as in chunked_loss.py. Gradients of logits lie between −1 and 1, so that their scale
is known before they are, and a kernel writes them at once in 8 bits and in both orders.
"""

import torch
from torch import Tensor

from glassformer.functional.triton_support import triton_refusal
from glassformer.training.float8_matrices import (
    GRADIENTS,
    MULTIPLE,
    Rounded,
    multiply,
    round_matrix,
)
from glassformer.training.loss import IGNORED

_FACTOR = 2.0**15  # the largest power of two that e5m2 holds


def takes_float8(hidden: Tensor, bias: Tensor | None) -> bool:
    """Whether the output layer can multiply in 8 bits."""
    fits = bool(hidden.numel()) and not any(size % MULTIPLE for size in hidden.shape)
    return fits and bias is None and triton_refusal(hidden.device) is None


def differentiate_chunk(
    hidden: Tensor, table: Rounded, targets: Tensor, vocab_size: int, smoothing: float
) -> tuple[Tensor, Tensor, Tensor]:
    """The loss of a chunk of rows, and its gradients for them and for the output matrix."""
    # Imported here, because the kernels import triton.
    from glassformer.training.float8_kernels import TILE, WARPS, gradient_kernel
    from glassformer.training.loss_kernel import measure_rows

    x = round_matrix(hidden)
    logits = multiply(x.rows, x.scale, table.rows, table.scale)
    (n, padded), sums = logits.shape, logits.new_empty(len(logits), dtype=torch.float32)
    losses = measure_rows(logits, targets, vocab_size, smoothing, sums=sums)
    g8 = logits.new_empty(n, padded, dtype=GRADIENTS)
    columns = logits.new_empty(padded, n, dtype=GRADIENTS)
    scale = x.scale.new_full((), 1 / _FACTOR)
    with torch.cuda.device_of(logits):
        gradient_kernel[(-(-n // TILE), -(-padded // TILE))](
            logits,
            targets,
            sums,
            g8,
            columns,
            n,
            padded,
            vocab_size,
            smoothing,
            _FACTOR,
            IGNORED=IGNORED,
            TILE=TILE,
            num_warps=WARPS,  # pyright: ignore[reportCallIssue]
        )
    # These sums run over all tokens: too long for the 14 bits of fast accumulation on Hopper.
    d_hidden = multiply(g8, scale, table.columns, table.scale, dtype=hidden.dtype, fast=False)
    d_table = multiply(columns, scale, x.columns, x.scale, dtype=torch.float32, fast=False)
    return losses.sum(), d_hidden, d_table[:vocab_size]
