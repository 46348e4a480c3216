"""Pictures of the models that ship: computed from their weights when they are shown."""

from collections.abc import Callable
from functools import cache
from typing import Any

import torch
import torch.nn.functional as F

from glassformer.languages import Language
from glassformer.models.checkpoints import load
from glassformer.school.learn.bars import Bars
from glassformer.school.learn.choices import Choices
from glassformer.school.learn.picture import Album, Picture, Row

_NEIGHBOURS, _CHOICES = 5, 12
_WORDS = ("king", "house", "red", "said", "ten")


@cache
def _load(name: str) -> Any:
    return load(name)


def _neighbours(language: Language) -> Picture:  # noqa: ARG001
    """The tokens whose embeddings have the largest cosine with that of a word, by model."""
    return Album(
        tuple(
            (word, Row(tuple(_nearest(name, word) for name in ("writer", "reader", "translator"))))
            for word in _WORDS
        )
    )


def _nearest(name: str, word: str) -> Bars:
    model = _load(name)
    tokenizer, weight = model.tokenizer, model.embedding.weight.detach()
    spaced = word if name == "reader" else f" {word}"  # byte-level words keep their space
    (token,) = tokenizer.encode(spaced, add_special=False)
    cosines = F.cosine_similarity(weight, weight[token : token + 1])
    cosines[token] = -1.0
    best = cosines.topk(_NEIGHBOURS)
    bars = (
        (tokenizer.decode([int(near)]).strip() or tokenizer.piece(int(near)), cosine)
        for cosine, near in zip(best.values.tolist(), best.indices.tolist(), strict=True)
    )
    return Bars(tuple((piece, cosine, f"{cosine:.2f}") for piece, cosine in bars), name, full=1.0)


def _choices(language: Language) -> Choices:  # noqa: ARG001
    """The likeliest tokens after a prompt."""
    model, prompt = _load("writer"), "She opened the"
    with torch.no_grad():
        logits = model(torch.tensor([model.tokenizer.encode(prompt)]))[0, -1]
    best = logits.topk(_CHOICES)
    tokens = tuple(model.tokenizer.decode([int(token)]).strip() for token in best.indices)
    return Choices(prompt, tokens, tuple(best.values.tolist()))


MODEL_PICTURES: dict[str, Callable[[Language], Picture]] = {
    "neighbours": _neighbours,
    "choices": _choices,
}
