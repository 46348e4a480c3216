"""First and second gradients of streaming attention.

First gradients are computed tile by tile from q, k and lse. Second gradients use autograd on the
definition, one chunk of rows at a time: a row of attention depends only on its own query and on all
keys, so the parts add up, and at most one chunk of the matrix is in memory.
"""

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import torch
from jaxtyping import Float
from torch import Tensor

from glassformer.functional.cells import Tile
from glassformer.functional.checks import Scoring
from glassformer.functional.tiles import Plan, split_groups, tile_scores, working_dtype


class Call(NamedTuple):
    """The settings of one call of streaming attention."""

    scoring: Scoring
    plan: Plan
    keep: "Keep | None"


def first_gradients(
    call: Call, out: Tensor, lse: Tensor, grad_out: Tensor, *operands: Tensor
) -> tuple[Tensor, ...]:
    """The gradients with respect to q, k, v and the tensors of the bias."""
    scoring, plan, keep = call
    q, k, v, *tensors = operands
    dtype = working_dtype(q.dtype)
    dq, dk, dv = (torch.zeros_like(x, dtype=dtype) for x in (q, k, v))
    sums = tuple(torch.zeros_like(t, dtype=dtype) for t in tensors)
    grad_out = grad_out.to(dtype)
    drift = (grad_out * out.to(dtype)).sum(-1, keepdim=True)  # Σ_j weight_j · dweight_j
    finite = lse.masked_fill(lse.isneginf(), 0.0)[..., None]
    for rows, tiles in plan.chunks():
        g, q_rows = grad_out[:, :, rows], q[:, :, rows].to(dtype)
        for tile in tiles:
            cols = tile.cols
            scores = tile_scores(q, k, scoring, tile)
            bend = _softcap_slope(q, k, scoring, tile) if scoring.softcap is not None else None
            weights = scores.sub_(finite[:, :, rows]).exp_()
            dweights = times(g, v[:, :, cols].to(dtype).transpose(-1, -2))
            kept = weights
            if keep is not None:
                factor = keep(tile, weights)
                kept, dweights = weights * factor, dweights * factor
            dv[:, :, cols] += _sum_over_groups(kept, g, k.shape[1])
            dscores = weights * (dweights - drift[:, :, rows])
            if scoring.bias is not None:
                scoring.bias.accumulate(sums, dscores, tile)
            if bend is not None:
                dscores = dscores * bend
            dq[:, :, rows] += times(dscores, k[:, :, cols].to(dtype)) * scoring.scale
            dk[:, :, cols] += _sum_over_groups(dscores, q_rows, k.shape[1]) * scoring.scale
    grads = (dq, dk, dv, *sums)
    return tuple(g.to(x.dtype) for g, x in zip(grads, operands, strict=True))


def second_gradients(
    call: Call, weights: Sequence[Tensor], grad_out: Tensor, operands: Sequence[Tensor]
) -> tuple[Tensor, ...]:
    """The gradients of Σ weights · first_gradients with respect to grad_out and every operand.

    With create_graph they are differentiable in turn (third derivatives); that graph stores the
    matrix.
    """
    build = torch.is_grad_enabled()
    with torch.enable_grad():
        inputs = [_branch(x, build) for x in (grad_out, *operands)]
        sums = [torch.zeros_like(x) for x in inputs]
        for rows, out in _out_by_rows(call, *inputs[1:]):
            first = torch.autograd.grad(
                out, inputs[1:], inputs[0][:, :, rows], create_graph=True, allow_unused=True
            )
            pairs = zip(first, weights, strict=True)
            total = torch.stack([(g * w).sum() for g, w in pairs if g is not None]).sum()
            grads = torch.autograd.grad(total, inputs, create_graph=build, allow_unused=True)
            sums = [s if g is None else s + g for s, g in zip(sums, grads, strict=True)]
    return tuple(sums)


def _branch(x: Tensor, build: bool) -> Tensor:
    # A view is a separate node: gradients stop there, even if k was computed from q, and a graph
    # can continue behind it.
    return x.view_as(x) if build and x.requires_grad else x.detach().requires_grad_()


def _out_by_rows(
    call: Call, q: Tensor, k: Tensor, v: Tensor, *tensors: Tensor
) -> Iterator[tuple[slice, Tensor]]:
    """Attention in chunks of rows, by differentiable operations; empty chunks are skipped."""
    scoring, plan, keep = call
    if scoring.bias is not None and tensors:  # without, it is the same for all
        scoring = scoring._replace(bias=scoring.bias.with_tensors(tensors))
    if keep is None:  # dropout is sampled per tile; without it, tiles have full width
        plan = Plan.of(scoring.extent, scoring.mask, q.device, wide=True)
    dtype = working_dtype(q.dtype)
    for rows, tiles in plan.chunks():
        if not tiles:
            continue
        parts = [tile_scores(q, k, scoring, tile) for tile in tiles]
        scores = torch.cat(parts, dim=-1)
        empty = scores.isneginf().all(-1, keepdim=True)
        weights = scores.masked_fill(empty, 0.0).softmax(-1).masked_fill(empty, 0.0)
        if keep is not None:
            kept = [keep(tile, part) for tile, part in zip(tiles, parts, strict=True)]
            weights = weights * torch.cat(kept, dim=-1)
        values = torch.cat([v[:, :, tile.cols] for tile in tiles], dim=2).to(dtype)
        yield rows, times(weights, values).to(q.dtype)


class Keep:
    """Which weights dropout keeps, regenerated from a seed for each tile: nothing is stored."""

    def __init__(self, dropout: float, seed: int, device: torch.device) -> None:
        self.dropout, self.seed = dropout, seed
        self.generator = torch.Generator(device)

    @classmethod
    def sample(cls, dropout: float, device: torch.device) -> "Keep":
        return cls(dropout, int(torch.randint(2**62, ())), device)

    def __call__(self, tile: Tile, like: Tensor) -> Tensor:
        # Unique per tile: no two tiles start at the same row and column.
        row, col = (which.start for which in (tile.rows, tile.cols) if isinstance(which, slice))
        self.generator.manual_seed((self.seed + (row << 31) + col) % 2**63)
        noise = torch.rand(like.shape, generator=self.generator, device=like.device)
        return (noise >= self.dropout).to(like.dtype) / (1 - self.dropout)


def _softcap_slope(q: Tensor, k: Tensor, scoring: Scoring, tile: Tile) -> Tensor:
    # d/dx of c·tanh(x/c) is 1 − tanh²(x/c), at the capped scores without bias or mask.
    bare = scoring._replace(mask=None, bias=None)
    capped = tile_scores(q, k, bare, tile)
    return 1 - (capped / scoring.softcap) ** 2  # type: ignore[operator]


def times(
    heads: Float[Tensor, "B H R C"], groups: Float[Tensor, "B K C D"]
) -> Float[Tensor, "B H R D"]:
    """Multiply each query head's rows by the matrix of its key-value head."""
    x = split_groups(heads, groups.shape[1])
    return (x.flatten(2, 3) @ groups).unflatten(2, x.shape[2:4]).flatten(1, 2)


def _sum_over_groups(
    heads: Float[Tensor, "B H R C"], rows: Float[Tensor, "B H R D"], n_kv_heads: int
) -> Float[Tensor, "B K C D"]:
    """Transposed product, summed over the query heads that share a key-value head."""
    x, y = (split_groups(t, n_kv_heads).flatten(2, 3) for t in (heads, rows))
    return x.transpose(-1, -2) @ y
