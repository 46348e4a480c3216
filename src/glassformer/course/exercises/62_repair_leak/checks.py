"""Loss and logits of a small model; a changed future; another source."""

from collections.abc import Iterator
from typing import Any

import torch
from torch import Tensor, nn

from glassformer.school.practice.cases import Case, Draw, battery

PAD = 0


class Attention(nn.Module):
    def __init__(self, dim: int) -> None:
        super().__init__()
        self.q_proj, self.k_proj = nn.Linear(dim, dim), nn.Linear(dim, dim)

    def forward(self, x: Tensor, context: Tensor, mask: Tensor | None = None) -> Tensor:
        scores = self.q_proj(x) @ self.k_proj(context).transpose(-2, -1)
        if mask is not None:
            scores = scores.masked_fill(~mask, -torch.inf)
        return scores.softmax(-1) @ context


class Model(nn.Module):
    def __init__(self, dim: int, vocab_size: int) -> None:
        super().__init__()
        self.table = nn.Embedding(vocab_size, dim)
        self.own, self.back, self.across = Attention(dim), Attention(dim), Attention(dim)
        self.head = nn.Linear(dim, vocab_size)

    def _embed(self, tokens: Tensor) -> Tensor:
        waves = torch.sin(
            torch.arange(tokens.shape[1])[:, None] + torch.arange(self.table.embedding_dim)
        )
        return self.table(tokens) + waves.to(self.table.weight)

    def encode(self, tokens: Tensor, mask: Tensor | None) -> Tensor:
        x = self._embed(tokens)
        return x + self.own(x, x, mask)

    def decode(self, tokens: Tensor, context: Tensor, mask: Any, context_mask: Any) -> Tensor:
        x = self._embed(tokens)
        x = x + self.back(x, x, mask)
        return self.head(x + self.across(x, context, context_mask))


def build(m: Any, dim: int, vocab_size: int) -> nn.Module:
    return m.TranslationLoss(Model(dim, vocab_size), PAD)


def draw_padded_tokens(draw: Draw, B: int, S: int, V: int) -> Tensor:
    """Tokens, the last one or two of each row but the first being padding."""
    tokens = draw.integers(1, V, B, S)
    lengths = S - draw.integers(1, 3, B)
    lengths[0] = S
    return tokens.where(torch.arange(S) < lengths[:, None], PAD)


def inputs(draw: Draw, square: bool = False) -> dict[str, Any]:
    B, N, S, C, V = draw.sizes(5, low=4, high=9)
    S = N - 1 if square else S
    source, target = draw_padded_tokens(draw, B, S, V), draw_padded_tokens(draw, B, N, V)
    return {"source": source, "target": target, "dim": C, "vocab_size": V}


def change_future(model: Any, source: Tensor, target: Tensor, changed: Tensor) -> Tensor:
    place = target.shape[1] // 2
    return (model.logits(source, target) - model.logits(source, changed))[:, :place]


def inputs_with_changed_future(draw: Draw) -> dict[str, Any]:
    given = inputs(draw)
    changed, place = given["target"].clone(), given["target"].shape[1] // 2
    changed[:, place:] = changed[:, place:] % (given["vocab_size"] - 1) + 1
    return {**given, "changed": changed}


def change_source(model: Any, source: Tensor, target: Tensor, other: Tensor) -> Tensor:
    return model.logits(source, target) - model.logits(other, target)


def inputs_with_other_source(draw: Draw) -> dict[str, Any]:
    given = inputs(draw)
    return {**given, "other": given["source"].flip(0).roll(1, 1)}


def cases(draw: Draw) -> Iterator[Case]:
    call = lambda model, source, target: model(source, target)  # noqa: E731
    for case in battery(
        draw, inputs_with_changed_future, change_future, build=build, variants=("values",)
    ):
        yield Case("future", case.call, case.inputs, ("difference",))
    for case in battery(
        draw, inputs_with_other_source, change_source, build=build, variants=("values",)
    ):
        yield Case("source", case.call, case.inputs, ("difference",))
    kinds = ("values", "gradient")
    yield from battery(draw, inputs, call, names=("loss",), build=build, variants=kinds)
    square = lambda d: inputs(d, True)  # noqa: E731
    yield from battery(draw, square, call, names=("loss",), build=build, variants=("values",))
