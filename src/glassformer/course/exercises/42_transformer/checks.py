"""Small layers, two on each side; padded sources; lengths that differ and lengths that agree."""

from collections.abc import Iterator
from typing import Any

import torch
from torch import Tensor, nn

from glassformer.school.practice.cases import Case, Draw, battery

PAD = 0


class Embedding(nn.Module):
    def __init__(self, vocab_size: int, dim: int) -> None:
        super().__init__()
        self.table = nn.Embedding(vocab_size, dim)

    def forward(self, tokens: Tensor) -> Tensor:
        places = torch.arange(tokens.shape[1])[:, None]
        waves = torch.sin(places + torch.arange(self.table.embedding_dim))  # (L, C)
        return self.table(tokens) + waves.to(self.table.weight)


class Attention(nn.Module):
    def __init__(self, dim: int) -> None:
        super().__init__()
        self.q_proj, self.k_proj = nn.Linear(dim, dim), nn.Linear(dim, dim)
        self.v_proj = nn.Linear(dim, dim)

    def forward(self, x: Tensor, context: Tensor, mask: Tensor | None = None) -> Tensor:
        q, k, v = self.q_proj(x), self.k_proj(context), self.v_proj(context)
        scores = q @ k.transpose(-2, -1) / q.shape[-1] ** 0.5  # (B, L, S)
        if mask is not None:
            scores = scores.masked_fill(~mask, -torch.inf)
        return scores.softmax(-1) @ v


class Encoding(nn.Module):
    def __init__(self, dim: int) -> None:
        super().__init__()
        self.attention, self.norm = Attention(dim), nn.LayerNorm(dim)

    def forward(self, x: Tensor, mask: Tensor | None = None) -> Tensor:
        return self.norm(x + self.attention(x, x, mask))


class Decoding(nn.Module):
    def __init__(self, dim: int) -> None:
        super().__init__()
        self.attention, self.cross = Attention(dim), Attention(dim)
        self.norm = nn.LayerNorm(dim)

    def forward(
        self, x: Tensor, context: Tensor, mask: Any = None, context_mask: Any = None
    ) -> Any:
        x = x + self.attention(x, x, mask)
        return self.norm(x + self.cross(x, context, context_mask))


def build(m: Any, dim: int, vocab_size: int) -> nn.Module:
    return m.Transformer(
        Embedding(vocab_size, dim),
        Embedding(vocab_size, dim),
        [Encoding(dim) for _ in range(2)],
        [Decoding(dim) for _ in range(2)],
        nn.Linear(dim, vocab_size),
        PAD,
    )


def draw_padded_tokens(draw: Draw, B: int, S: int, V: int) -> Tensor:
    """Tokens, the last one or two of each row but the first being padding."""
    tokens = draw.integers(1, V, B, S)
    lengths = S - draw.integers(1, min(S - 1, 2) + 1, B)
    lengths[0] = S
    return tokens.where(torch.arange(S) < lengths[:, None], PAD)


def inputs(draw: Draw, square: bool = False) -> dict[str, Any]:
    B, L, S, C, V = draw.sizes(5, low=3, high=9)
    S = L if square else S
    source, target = draw_padded_tokens(draw, B, S, V), draw.integers(1, V, B, L)
    return {"source": source, "target": target, "dim": C, "vocab_size": V}


def change_future(model: Any, source: Tensor, target: Tensor, changed: Tensor) -> Tensor:
    place = target.shape[1] // 2
    return (model(source, target) - model(source, changed))[:, :place]


def inputs_with_changed_future(draw: Draw) -> dict[str, Any]:
    given = inputs(draw)
    target, place = given["target"], given["target"].shape[1] // 2
    changed = target.clone()
    changed[:, place:] = changed[:, place:] % (given["vocab_size"] - 1) + 1
    return {**given, "changed": changed}


def cases(draw: Draw) -> Iterator[Case]:
    call = lambda model, source, target: model(source, target)  # noqa: E731
    kinds = ("parameters", "values", "gradient", "float32", "batch")
    yield from battery(draw, inputs, call, names=("logits",), build=build, variants=kinds)
    square = battery(
        draw, lambda d: inputs(d, True), call, names=("logits",), build=build, variants=("values",)
    )
    for case in square:
        yield Case("square", case.call, case.inputs, case.names)
    for case in battery(
        draw, inputs_with_changed_future, change_future, build=build, variants=("values",)
    ):
        yield Case("future", case.call, case.inputs, ("difference",))
