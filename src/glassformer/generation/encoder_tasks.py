"""What an encoder does with text: guess what is hidden, and make one vector of each text."""

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from jaxtyping import Float
from torch import Tensor

from glassformer.errors import ConfigError, ShapeError
from glassformer.generation.continuation import tokenizer_of
from glassformer.models import Encoder

GAP = "[MASK]"


@dataclass(frozen=True, kw_only=True, slots=True)
class Guess:
    """A token that may stand in a gap."""

    piece: str
    token: int
    probability: float


def fill(model: Encoder, text: str, *, k: int = 5) -> list[list[Guess]]:
    """The `k` likeliest tokens for each gap of a text, which is written [MASK] for any model."""
    _check_encoder(model)
    if k < 1:
        raise ConfigError(f"k must be at least 1; got k={k}.")
    tokenizer, mask = tokenizer_of(model), model.special.mask
    if mask is None:
        raise ConfigError("Only a model with a mask token fills gaps; this one has none.")
    tokens = torch.tensor([tokenizer.encode(text.replace(GAP, tokenizer.piece(mask)))])
    gaps = (tokens[0] == mask).nonzero().flatten()
    if not len(gaps):
        raise ConfigError(
            f"A text to fill must have a gap, written {GAP}; got {_shortened(text)!r}."
        )
    with torch.no_grad():
        hidden = model(tokens.to(model.embedding.weight.device))
        probabilities = model.fill(hidden)[0, gaps].float().softmax(-1)
    best = probabilities.topk(min(k, probabilities.shape[-1]))
    return [
        [
            Guess(piece=_readable(model, int(token)), token=int(token), probability=float(p))
            for p, token in zip(values, ids, strict=True)
        ]
        for values, ids in zip(best.values, best.indices, strict=True)
    ]


def embed(model: Encoder, texts: Sequence[str], *, batch: int = 32) -> Float[Tensor, "N C"]:
    """One vector of length 1 for each text; the dot product of two is how alike they are."""
    _check_encoder(model)
    tokenizer, device = tokenizer_of(model), model.embedding.weight.device
    encoded = [tokenizer.encode(text) for text in texts]
    longest = max(map(len, encoded), default=0)
    if not encoded or min(map(len, encoded)) == 0:
        raise ConfigError("A text to embed must have at least one token; got an empty one.")
    if longest > model.config.max_len:
        raise ShapeError(
            f"A text must have at most max_len={model.config.max_len} tokens; got {longest}. "
            "Cut it into parts and embed each."
        )
    # Texts of like length together: little padding.
    order = sorted(range(len(encoded)), key=lambda i: len(encoded[i]))
    vectors = torch.empty(len(encoded), model.config.dim, device=device)
    for start in range(0, len(order), batch):
        rows = order[start : start + batch]
        lengths = torch.tensor([len(encoded[i]) for i in rows], device=device)
        tokens = torch.zeros(len(rows), int(lengths.max()), dtype=torch.long, device=device)
        for row, i in zip(tokens, rows, strict=True):
            row[: len(encoded[i])] = torch.tensor(encoded[i])
        with torch.no_grad():
            vectors[rows] = model.embed(tokens, lengths=lengths).float()
    return vectors


def _check_encoder(model: Encoder) -> None:
    if not isinstance(model, Encoder):
        raise ConfigError(
            f"Only an encoder fills gaps and embeds texts; got {type(model).__name__}. Use "
            "generate for a decoder, translate for an encoder-decoder."
        )


def _readable(model: Encoder, token: int) -> str:
    """A token as it reads; special ones, which decoding leaves out, as the vocabulary has them."""
    tokenizer = tokenizer_of(model)
    return tokenizer.decode([token]).strip() or tokenizer.piece(token)


def _shortened(text: str, most: int = 60) -> str:
    return text if len(text) <= most else text[: most - 1] + "…"
