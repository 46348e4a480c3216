"""The parts are made here: heads that can be masked, two linear layers, a dropout that is fixed."""

from collections.abc import Iterator
from typing import Any

import torch
from torch import Tensor, nn

from glassformer.practice.cases import Case, Draw, battery


class Attention(nn.Module):
    def __init__(self, dim: int, n_heads: int) -> None:
        super().__init__()
        self.n_heads = n_heads
        self.q_proj, self.k_proj = nn.Linear(dim, dim), nn.Linear(dim, dim)
        self.v_proj, self.out_proj = nn.Linear(dim, dim), nn.Linear(dim, dim)

    def forward(self, x: Tensor, context: Tensor, mask: Tensor | None = None) -> Tensor:
        q, k, v = (
            proj(y).unflatten(-1, (self.n_heads, -1)).transpose(1, 2)
            for proj, y in ((self.q_proj, x), (self.k_proj, context), (self.v_proj, context))
        )
        scores = q @ k.transpose(-2, -1) / q.shape[-1] ** 0.5  # (B, H, L, S)
        if mask is not None:
            scores = scores.masked_fill(~mask.unsqueeze(-3), -torch.inf)
        return self.out_proj((scores.softmax(-1) @ v).transpose(1, 2).flatten(2))


class FeedForward(nn.Module):
    def __init__(self, dim: int, hidden_dim: int) -> None:
        super().__init__()
        self.up, self.down = nn.Linear(dim, hidden_dim), nn.Linear(hidden_dim, dim)

    def forward(self, x: Tensor) -> Tensor:
        return self.down(self.up(x).relu())


class FixedDropout(nn.Module):
    """Drops every third number, always the same ones."""

    def forward(self, x: Tensor) -> Tensor:
        kept = torch.arange(x.shape[-1], device=x.device) % 3 != 1
        return x * kept / 0.5


def build(m: Any, dim: int, n_heads: int, hidden_dim: int, drops: bool) -> nn.Module:
    dropout = FixedDropout() if drops else nn.Identity()
    return m.EncoderLayer(Attention(dim, n_heads), FeedForward(dim, hidden_dim), dim, dropout)


def inputs(draw: Draw, drops: bool = False) -> dict[str, Any]:
    B, L, D, F = draw.sizes(4)
    H = draw.choice([1, 2, 3])
    sizes = {"dim": H * D, "n_heads": H, "hidden_dim": F, "drops": drops}
    return {"x": draw.normal(B, L, H * D), "mask": draw.mask(B, 1, L), **sizes}


def cases(draw: Draw) -> Iterator[Case]:
    call = lambda model, x, mask: model(x, mask)  # noqa: E731
    yield from battery(draw, inputs, call, build=build, skip=("bfloat16",))
    yield from _dropped(draw, call)


def _dropped(draw: Draw, call: Any) -> Iterator[Case]:
    dropping = battery(draw, lambda d: inputs(d, True), call, build=build, variants=("values",))
    for case in dropping:
        yield Case("dropout", case.call, case.inputs, case.names)
