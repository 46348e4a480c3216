"""Attention in pure PyTorch, tile by tile with an online softmax: linear memory, anywhere.

Each row chunk goes over the keys once, keeping for every query a running maximum m, the sum l of
exp(score − m) and the sum of exp(score − m) · v; a larger maximum rescales both (Milakov and
Gimelshein 2018; Rabe and Staats 2021). Backward recomputes each tile from q, k and
lse = m + log l (Dao et al. 2022). Any mask, bias, softcap and dropout; empty tiles are skipped.
"""

from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor
from torch.autograd.function import once_differentiable

from glassformer.attention.cells import Tile
from glassformer.attention.checks import Scoring
from glassformer.attention.tiles import Plan, split_groups, tile_scores, working_dtype


def refusal(q: Tensor, k: Tensor, v: Tensor, site: Scoring, dropout: float) -> str | None:
    """Why this backend cannot do what is asked; None: it can."""
    del q, k, v, site, dropout
    return None


def attend(
    q: Float[Tensor, "B H L D"],
    k: Float[Tensor, "B K S D"],
    v: Float[Tensor, "B K S E"],
    site: Scoring,
    dropout: float = 0.0,
) -> Float[Tensor, "B H L E"]:
    """The weighted sum of the values, without ever holding the weights."""
    tensors = site.bias.tensors() if site.bias is not None else ()
    return _Streaming.apply(q, k, v, site, dropout, *tensors)  # type: ignore[return-value]


def forward(
    q: Tensor, k: Tensor, v: Tensor, site: Scoring, plan: Plan, keep: "_Keep | None" = None
) -> tuple[Float[Tensor, "B H L E"], Float[Tensor, "B H L"]]:
    """Out, and the log-sum-exp of every row of scores (−∞ where nothing is allowed)."""
    B, H, L, _ = site.extent
    dtype = working_dtype(q.dtype)
    out = torch.empty(B, H, L, v.shape[-1], dtype=q.dtype, device=q.device)
    lse = torch.empty(B, H, L, dtype=dtype, device=q.device)
    for rows, tiles in plan.chunks():
        shape = (B, H, rows.stop - rows.start)
        top = torch.full(shape, -torch.inf, dtype=dtype, device=q.device)
        total = torch.zeros(shape, dtype=dtype, device=q.device)
        summed = torch.zeros(*shape, v.shape[-1], dtype=dtype, device=q.device)
        for tile in tiles:
            scores = tile_scores(q, k, site, tile)
            higher = torch.maximum(top, scores.amax(-1))
            finite = higher.masked_fill(higher.isneginf(), 0.0)  # −∞ − −∞ has no value
            weights = scores.sub_(finite[..., None]).exp_()  # B H R C
            shrink = torch.exp(top - finite)
            top = higher
            total = total * shrink + weights.sum(-1)
            if keep is not None:
                weights = weights * keep(tile, weights)
            summed = summed * shrink[..., None] + _times(weights, v[:, :, tile.cols].to(dtype))
        empty = total == 0
        out[:, :, rows] = (summed / total.masked_fill(empty, 1.0)[..., None]).to(q.dtype)
        lse[:, :, rows] = top + total.log()
    return out, lse


class _Streaming(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any, q: Tensor, k: Tensor, v: Tensor, site: Scoring, dropout: float, *tensors: Tensor
    ) -> Tensor:
        plan = Plan.of(site.extent, site.mask, q.device)
        keep = _Keep.drawn(dropout, q.device) if dropout else None
        out, lse = forward(q, k, v, site, plan, keep)
        ctx.save_for_backward(q, k, v, out, lse, *tensors)
        ctx.site, ctx.plan, ctx.keep = site, plan, keep
        return out

    @staticmethod
    @once_differentiable
    def backward(  # type: ignore[override]
        ctx: Any, *grad_outputs: Tensor
    ) -> tuple[Tensor | None, ...]:
        q, k, v, out, lse, *tensors = ctx.saved_tensors
        site, plan, keep = ctx.site, ctx.plan, ctx.keep
        dtype = working_dtype(q.dtype)
        dq, dk, dv = (torch.zeros_like(x, dtype=dtype) for x in (q, k, v))
        sums = tuple(torch.zeros_like(t, dtype=dtype) for t in tensors)
        grad_out = grad_outputs[0].to(dtype)
        drift = (grad_out * out.to(dtype)).sum(-1, keepdim=True)  # Σ_j weight_j · dweight_j
        finite = lse.masked_fill(lse.isneginf(), 0.0)[..., None]
        for rows, tiles in plan.chunks():
            g, q_rows = grad_out[:, :, rows], q[:, :, rows].to(dtype)
            for tile in tiles:
                cols = tile.cols
                scores = tile_scores(q, k, site, tile)
                bend = _softcap_slope(q, k, site, tile) if site.softcap is not None else None
                weights = scores.sub_(finite[:, :, rows]).exp_()
                dweights = _times(g, v[:, :, cols].to(dtype).transpose(-1, -2))
                kept = weights
                if keep is not None:
                    factor = keep(tile, weights)
                    kept, dweights = weights * factor, dweights * factor
                dv[:, :, cols] += _gathered(kept, g, k.shape[1])
                dscores = weights * (dweights - drift[:, :, rows])
                if site.bias is not None:
                    site.bias.accumulate(sums, dscores, tile)
                if bend is not None:
                    dscores = dscores * bend
                dq[:, :, rows] += _times(dscores, k[:, :, cols].to(dtype)) * site.scale
                dk[:, :, cols] += _gathered(dscores, q_rows, k.shape[1]) * site.scale
        dq, dk, dv = (g.to(q.dtype) for g in (dq, dk, dv))
        dtensors = (g.to(t.dtype) for g, t in zip(sums, tensors, strict=True))
        return (dq, dk, dv, None, None, *dtensors)


class _Keep:
    """Which weights dropout keeps, drawn anew from its seed for each tile: nothing is stored."""

    def __init__(self, dropout: float, seed: int, device: torch.device) -> None:
        self.dropout, self.seed = dropout, seed
        self.generator = torch.Generator(device)

    @classmethod
    def drawn(cls, dropout: float, device: torch.device) -> "_Keep":
        return cls(dropout, int(torch.randint(2**62, ())), device)

    def __call__(self, tile: Tile, like: Tensor) -> Tensor:
        # Distinct for every tile: no two tiles begin at the same row and column.
        row, col = (which.start for which in (tile.rows, tile.cols) if isinstance(which, slice))
        self.generator.manual_seed((self.seed + (row << 31) + col) % 2**63)
        noise = torch.rand(like.shape, generator=self.generator, device=like.device)
        return (noise >= self.dropout).to(like.dtype) / (1 - self.dropout)


def _softcap_slope(q: Tensor, k: Tensor, site: Scoring, tile: Tile) -> Tensor:
    # d/dx of c·tanh(x/c) is 1 − tanh²(x/c), at the capped scores without bias or mask.
    bare = site._replace(mask=None, bias=None)
    capped = tile_scores(q, k, bare, tile)
    return 1 - (capped / site.softcap) ** 2  # type: ignore[operator]


def _times(
    heads: Float[Tensor, "B H R C"], groups: Float[Tensor, "B K C D"]
) -> Float[Tensor, "B H R D"]:
    """Each query head's rows times the matrix of its key-value head."""
    x = split_groups(heads, groups.shape[1])
    return (x.flatten(2, 3) @ groups).unflatten(2, x.shape[2:4]).flatten(1, 2)


def _gathered(
    heads: Float[Tensor, "B H R C"], rows: Float[Tensor, "B H R D"], n_kv_heads: int
) -> Float[Tensor, "B K C D"]:
    """Transposed product, summed over the query heads that share a key-value head."""
    x, y = (split_groups(t, n_kv_heads).flatten(2, 3) for t in (heads, rows))
    return x.transpose(-1, -2) @ y
