"""Attention in pure PyTorch, tile by tile with an online softmax: linear memory, any device.

Each row chunk visits the keys once, keeping for every query a running maximum m, the sum l of
exp(score − m) and the sum of exp(score − m) · v; a larger maximum rescales both (Milakov and
Gimelshein 2018; Rabe and Staats 2021). Backward recomputes each tile from q, k and
lse = m + log l (Dao et al. 2022). Any mask, bias, softcap and dropout; empty tiles are skipped.
"""

from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor

from glassformer.functional.autocast import without_autocast
from glassformer.functional.backends.streaming_gradients import (
    Call,
    Keep,
    first_gradients,
    second_gradients,
    times,
)
from glassformer.functional.checks import Scoring
from glassformer.functional.graph_capture import is_traced
from glassformer.functional.tiles import Plan, tile_scores, working_dtype


def refusal(q: Tensor, k: Tensor, v: Tensor, scoring: Scoring, dropout: float) -> str | None:
    """Why this backend cannot compute this call; None if it can."""
    del k, v, scoring, dropout
    if is_traced(q) and (torch.compiler.is_exporting() or not torch.compiler.is_compiling()):
        # A graph break is possible in a compiled function, but not in an export or a transform.
        return "it plans by the values of masks, which a graph or a transform does not have"
    return None


def attend(
    q: Float[Tensor, "B H L D"],
    k: Float[Tensor, "B K S D"],
    v: Float[Tensor, "B K S E"],
    scoring: Scoring,
    dropout: float = 0.0,
) -> Float[Tensor, "B H L E"]:
    """The weighted sum of the values, without storing the weights."""
    tensors = scoring.bias.tensors() if scoring.bias is not None else ()
    plan = Plan.of(scoring.extent, scoring.mask, q.device)
    keep = Keep.sample(dropout, q.device) if dropout else None
    return _Streaming.apply(Call(scoring, plan, keep), q, k, v, *tensors)  # type: ignore[return-value]


def forward(
    q: Tensor, k: Tensor, v: Tensor, scoring: Scoring, plan: Plan, keep: "Keep | None" = None
) -> tuple[Float[Tensor, "B H L E"], Float[Tensor, "B H L"]]:
    """The output, and the log-sum-exp of every row of scores (−∞ if nothing is allowed)."""
    B, H, L, _ = scoring.extent
    dtype = working_dtype(q.dtype)
    out = torch.empty(B, H, L, v.shape[-1], dtype=q.dtype, device=q.device)
    lse = torch.empty(B, H, L, dtype=dtype, device=q.device)
    for rows, tiles in plan.chunks():
        shape = (B, H, rows.stop - rows.start)
        top = torch.full(shape, -torch.inf, dtype=dtype, device=q.device)
        total = torch.zeros(shape, dtype=dtype, device=q.device)
        summed = torch.zeros(*shape, v.shape[-1], dtype=dtype, device=q.device)
        for tile in tiles:
            scores = tile_scores(q, k, scoring, tile)
            higher = torch.maximum(top, scores.amax(-1))
            finite = higher.masked_fill(higher.isneginf(), 0.0)  # −∞ − −∞ is NaN
            weights = scores.sub_(finite[..., None]).exp_()  # B H R C
            shrink = torch.exp(top - finite)
            top = higher
            total = total * shrink + weights.sum(-1)
            if keep is not None:
                weights = weights * keep(tile, weights)
            summed = summed * shrink[..., None] + times(weights, v[:, :, tile.cols].to(dtype))
        empty = total == 0
        out[:, :, rows] = (summed / total.masked_fill(empty, 1.0)[..., None]).to(q.dtype)
        lse[:, :, rows] = top + total.log()
    return out, lse


class _Streaming(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, call: Call, q: Tensor, k: Tensor, v: Tensor, *tensors: Tensor) -> Tensor:
        with without_autocast(q):
            out, lse = forward(q, k, v, call.scoring, call.plan, call.keep)
        ctx.save_for_backward(q, k, v, *tensors, out, lse)
        ctx.call = call
        return out

    @staticmethod
    def backward(ctx: Any, *grad_outputs: Tensor) -> tuple[Tensor | None, ...]:
        *operands, out, lse = ctx.saved_tensors
        grads = _Gradients.apply(ctx.call, out.detach(), lse, grad_outputs[0], *operands)
        return None, *grads  # type: ignore[misc]


class _Gradients(torch.autograd.Function):
    """The gradients as a function of the operands, which also determine `out` and `lse`."""

    @staticmethod
    def forward(
        ctx: Any, call: Call, out: Tensor, lse: Tensor, grad_out: Tensor, *operands: Tensor
    ) -> tuple[Tensor, ...]:
        ctx.save_for_backward(grad_out, *operands)
        ctx.call = call
        with without_autocast(out):
            return first_gradients(call, out, lse, grad_out, *operands)

    @staticmethod
    def backward(ctx: Any, *grad_outputs: Tensor) -> tuple[Tensor | None, ...]:
        grad_out, *operands = ctx.saved_tensors
        with without_autocast(grad_out):
            grads = second_gradients(ctx.call, grad_outputs, grad_out, operands)
        return None, None, None, *grads
