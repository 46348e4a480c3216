"""Two lengths, two masks; without masks; and of one length, where a mix-up would go unseen."""

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


def build(m: Any, dim: int, n_heads: int, hidden_dim: int) -> nn.Module:
    attention, cross = Attention(dim, n_heads), Attention(dim, n_heads)
    return m.DecoderLayer(attention, cross, FeedForward(dim, hidden_dim), dim)


def inputs(draw: Draw) -> dict[str, Any]:
    B, L, S, D, F = draw.sizes(5)
    return _given(draw, B, L, S, D, F)


def _given(draw: Draw, B: int, L: int, S: int, D: int, F: int) -> dict[str, Any]:
    H = draw.choice([1, 2, 3])
    x, context = draw.normal(B, L, H * D), draw.normal(B, S, H * D)
    causal = torch.ones(L, L, dtype=torch.bool).tril().expand(B, L, L).clone()
    masks = {"mask": causal, "context_mask": draw.mask(B, 1, S)}
    return {"x": x, "context": context, **masks, "dim": H * D, "n_heads": H, "hidden_dim": F}


def square(draw: Draw) -> dict[str, Any]:
    B, L, D, F = draw.sizes(4, low=3)
    return _given(draw, B, L, L, D, F)


def unmasked(draw: Draw) -> dict[str, Any]:
    given = inputs(draw)
    return {name: value for name, value in given.items() if "mask" not in name}


def call(model: Any, x: Tensor, context: Tensor, mask: Any = None, context_mask: Any = None) -> Any:
    return model(x, context, mask, context_mask)


def cases(draw: Draw) -> Iterator[Case]:
    yield from battery(draw, inputs, call, build=build, skip=("bfloat16",))
    for name, given in (("unmasked", unmasked), ("square", square)):
        for case in battery(draw, given, call, build=build, variants=("values",)):
            yield Case(name, case.call, case.inputs, case.names)
