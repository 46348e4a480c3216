"""Muon (Jordan et al. 2024): the momentum of a matrix, made orthogonal, is its update.

    momentum   m ← 0.95 m + g,   then g + 0.95 m          (Nesterov)
    direction  U Vᵀ  for  U Σ Vᵀ = momentum               all singular values become about 1

Five steps of a polynomial find U Vᵀ by products alone. It is for the matrices inside blocks, where
each fused one (q, k and v; gate and up) counts as several; embeddings, norms and biases keep AdamW.
Updates have the size of AdamW's (Liu et al. 2025, §2.2), so that both share one learning rate.
"""

from collections.abc import Callable
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor, nn

from glassformer.errors import ConfigError
from glassformer.layers import (
    Block,
    CrossAttention,
    ExpertLinear,
    FeedForward,
    MixtureOfExperts,
    SelfAttention,
)

_MOMENTUM = 0.95
_POLYNOMIAL = (3.4445, -4.7750, 2.0315)  # steep at 0: small singular values grow fast
_SIZE = 0.2  # root mean square of AdamW's usual updates


class Muon(torch.optim.AdamW):
    """Muon for the parameter groups that have `row_counts`, AdamW for the others."""

    @torch.no_grad()
    def step(self, closure: Callable[[], float] | None = None) -> Any:
        groups = self.param_groups
        self.param_groups = [group for group in groups if "row_counts" not in group]
        try:
            result = super().step(closure)  # type: ignore[arg-type]
        finally:
            self.param_groups = groups
        for group in groups:
            if "row_counts" in group:
                self._update(group)
        return result

    def _update(self, group: dict[str, Any]) -> None:
        for matrix, row_counts in zip(group["params"], group["row_counts"], strict=True):
            if matrix.grad is None:
                continue
            state = self.state[matrix]
            if not state:
                state["momentum"] = torch.zeros_like(matrix)
            momentum = state["momentum"].mul_(_MOMENTUM).add_(matrix.grad)
            direction = matrix.grad.add(momentum, alpha=_MOMENTUM)
            matrix.mul_(1 - group["lr"] * group["weight_decay"])
            parts = matrix.flatten(0, -2).split(row_counts)  # experts are stacked
            ahead_parts = direction.flatten(0, -2).split(row_counts)
            for part, ahead in zip(parts, ahead_parts, strict=True):
                rate = group["lr"] * _SIZE * max(part.shape) ** 0.5
                part.sub_(orthogonalize(ahead).to(part.dtype), alpha=rate)


def orthogonalize(matrix: Float[Tensor, "m n"]) -> Float[Tensor, "m n"]:
    """U Vᵀ of a matrix U Σ Vᵀ, roughly: singular values end between 0.7 and 1.2.

    >>> values = torch.linalg.svdvals(orthogonalize(torch.diag(torch.tensor([5.0, 0.5]))))
    >>> bool((values > 0.6).all() and (values < 1.3).all())
    True
    """
    a, b, c = _POLYNOMIAL
    x = matrix.to(torch.bfloat16) if matrix.is_cuda else matrix
    is_tall = x.shape[0] > x.shape[1]
    x = x.t() if is_tall else x
    x = x / (x.norm() + 1e-7)
    for _ in range(5):
        gram = x @ x.t()
        x = a * x + (b * gram + c * gram @ gram) @ x
    return x.t() if is_tall else x


def split_parameters(model: nn.Module) -> tuple[list[Tensor], list[list[int]]]:
    """The matrices inside blocks, and how many rows each of the matrices fused in them has."""
    matrices: list[Tensor] = []
    row_counts: list[list[int]] = []
    for block in (part for part in model.modules() if isinstance(part, Block)):
        for owner in block.modules():
            for name, layer in owner.named_children():
                if isinstance(layer, nn.Linear):
                    matrices.append(layer.weight)
                    row_counts.append(_fused_rows(owner, name, len(layer.weight)))
                elif isinstance(layer, ExpertLinear):
                    n_experts, n_rows, _ = layer.weight.shape
                    matrices.append(layer.weight)
                    row_counts.append(_fused_rows(owner, name, n_rows) * n_experts)
    if any(hasattr(matrix, "to_local") for matrix in matrices):
        raise ConfigError(
            "optimizer.kind 'muon' needs whole matrices in every process; got "
            "compute.parallel='fsdp'. Use ddp, or adamw."
        )
    return matrices, row_counts


def _fused_rows(owner: nn.Module, name: str, n_rows: int) -> list[int]:
    if isinstance(owner, SelfAttention) and name == "qkv":
        n_kv = owner.n_kv_heads * owner.head_dim
        return [owner.n_heads * owner.head_dim, n_kv, n_kv]
    is_double = (isinstance(owner, CrossAttention) and name == "kv") or (
        isinstance(owner, FeedForward | MixtureOfExperts)
        and name in ("up", "expert_up")
        and owner.gated
    )
    return [n_rows // 2, n_rows // 2] if is_double else [n_rows]
