"""Loss, decoding and the first steps by value; then real training, tested on unseen words."""

from collections.abc import Iterator
from typing import Any

import torch
from torch import Tensor, nn

from glassformer.school.practice.cases import Case, Draw
from glassformer.school.practice.random_inputs import fill

BEGIN, VOCAB, LENGTH, DIM = 0, 9, 4, 32
N_WORDS, STEPS, RATE = 256, 30, 1e-2  # enough for nearly all words, in a fraction of a second


class Attention(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.norm = nn.LayerNorm(DIM)
        self.q_proj, self.kv_proj = nn.Linear(DIM, DIM), nn.Linear(DIM, 2 * DIM)

    def forward(self, x: Tensor, context: Tensor, mask: Tensor | None = None) -> Tensor:
        q = self.q_proj(self.norm(x))
        k, v = self.kv_proj(context).chunk(2, dim=-1)
        scores = q @ k.transpose(-2, -1) / DIM**0.5
        if mask is not None:
            scores = scores.masked_fill(~mask, -torch.inf)
        return x + scores.softmax(-1) @ v


class Letters(nn.Module):
    """As small as an encoder-decoder can be: one layer each, one head."""

    def __init__(self) -> None:
        super().__init__()
        self.source_table, self.target_table = nn.Embedding(VOCAB, DIM), nn.Embedding(VOCAB, DIM)
        self.places = nn.Parameter(torch.randn(LENGTH + 1, DIM))
        self.encoder, self.decoder, self.across = Attention(), Attention(), Attention()
        self.head = nn.Linear(DIM, VOCAB)

    def forward(self, source: Tensor, target: Tensor) -> Tensor:
        L = target.shape[1]
        context = self.source_table(source) + self.places[: source.shape[1]]
        context = self.encoder(context, context)
        x = self.target_table(target) + self.places[:L]
        x = self.decoder(x, x, torch.ones(L, L, dtype=torch.bool).tril())
        return self.head(self.across(x, context))


def build_model(key: int) -> nn.Module:
    model = fill(Letters().double(), key)
    with torch.no_grad():
        for name in ("source_table", "target_table"):  # every letter must make a difference
            model.get_parameter(f"{name}.weight").mul_(8)
    return model


def loss(m: Any, words: Tensor, key: int) -> Any:
    return m.loss(build_model(key), words, words.flip(1), BEGIN)


def write(m: Any, words: Tensor, key: int) -> Any:
    return m.write(build_model(key), words, BEGIN, LENGTH)


def steps(m: Any, words: Tensor, key: int) -> Any:
    return m.train(build_model(key), words, words.flip(1), BEGIN, 5, 1e-3)


def letters(m: Any, words: Tensor, unseen: Tensor) -> str:
    model = Letters()
    m.train(model, words, words.flip(1), BEGIN, STEPS, RATE)
    written = m.write(model, unseen, BEGIN, LENGTH)
    right = written.shape == unseen.shape and (written == unseen.flip(1)).all(1).double().mean()
    return "≥ 90 %" if right >= 0.9 else "< 90 %"


def cases(draw: Draw) -> Iterator[Case]:
    # Three models write: one alone may repeat itself, whatever its input.
    for name, call in (("loss", loss), *[("write", write)] * 3, ("steps", steps)):
        words = draw.integers(1, VOCAB, draw.size(20, 29), LENGTH)
        yield Case(name, call, {"words": words, "key": draw.key()}, (name,))
    words = torch.cartesian_prod(*[torch.arange(1, VOCAB)] * LENGTH)  # every possible word
    words = words[draw.normal(len(words)).argsort()]
    known, unseen = words[:N_WORDS], words[N_WORDS : N_WORDS + 100]
    yield Case("letters", letters, {"words": known, "unseen": unseen}, ("right",))
