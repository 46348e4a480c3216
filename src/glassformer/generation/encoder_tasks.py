"""What an encoder does with text: predict masked tokens, and embed whole texts."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import overload

import torch
from jaxtyping import Float
from torch import Tensor

from glassformer.errors import ConfigError, ShapeError
from glassformer.generation.continuation import tokenizer_of
from glassformer.generation.text_arguments import list_texts
from glassformer.models import Encoder

GAP = "[MASK]"


@dataclass(frozen=True, kw_only=True, slots=True)
class Guess:
    """A token that may fill a gap, and its probability."""

    piece: str
    token: int
    probability: float


Gaps = list[list[Guess]]  # the guesses for each gap of a text


@overload
def fill(model: Encoder, text: str, *, k: int = 5) -> Gaps: ...
@overload
def fill(model: Encoder, text: list[str], *, k: int = 5) -> list[Gaps]: ...
def fill(model: Encoder, text: str | list[str], *, k: int = 5) -> Gaps | list[Gaps]:
    """The `k` likeliest tokens for each gap of a text; a gap is written [MASK] for any model.

    For a list of texts the answer is a list with the gaps of each.

    >>> import glassformer as gf
    >>> reader = gf.load("reader")
    >>> ((guess,),) = gf.fill(reader, "He is taller [MASK] me.", k=1)
    >>> guess.piece
    'than'
    >>> len(gf.fill(reader, ["[MASK] was here.", "And God [MASK]."]))
    2
    """
    _check_encoder(model)
    check_guesses(k)
    gaps = [_fill_gaps(model, each, k) for each in list_texts(text)]
    return gaps if isinstance(text, list) else gaps[0]


def check_guesses(k: int) -> None:
    """Reject a number of guesses below 1."""
    if k < 1:
        raise ConfigError(f"k must be at least 1; got k={k}.")


def _fill_gaps(model: Encoder, text: str, k: int) -> Gaps:
    tokenizer, mask = tokenizer_of(model), model.special.mask
    if mask is None:
        raise ConfigError("Filling gaps needs a mask token; this model has none.")
    tokens = torch.tensor([tokenizer.encode(text.replace(GAP, tokenizer.piece(mask)))])
    gaps = (tokens[0] == mask).nonzero().flatten()
    if not len(gaps):
        raise ConfigError(f"A text to fill must have a gap, written {GAP}; got {_shorten(text)!r}.")
    with torch.no_grad():
        hidden = model(tokens.to(model.embedding.weight.device))
        probabilities = model.fill(hidden)[0, gaps].float().softmax(-1)
    best = probabilities.topk(min(k, probabilities.shape[-1]))
    return [
        [
            Guess(piece=_name_token(model, int(token)), token=int(token), probability=float(p))
            for p, token in zip(values, ids, strict=True)
        ]
        for values, ids in zip(best.values, best.indices, strict=True)
    ]


@overload
def embed(model: Encoder, text: str, *, batch: int = 32) -> Float[Tensor, " C"]: ...
@overload
def embed(model: Encoder, text: list[str], *, batch: int = 32) -> Float[Tensor, "N C"]: ...
def embed(
    model: Encoder, text: str | list[str], *, batch: int = 32
) -> Float[Tensor, " C"] | Float[Tensor, "N C"]:
    """A unit vector for a text, or one row for each text of a list.

    The dot product of two such vectors is the cosine similarity of the texts. `batch` texts run
    through the model at a time.

    >>> import glassformer as gf
    >>> reader = gf.load("reader")
    >>> gf.embed(reader, "The king").shape, gf.embed(reader, ["The king", "The queen"]).shape
    (torch.Size([256]), torch.Size([2, 256]))
    """
    _check_encoder(model)
    vectors = _embed_texts(model, list_texts(text), batch)
    return vectors if isinstance(text, list) else vectors[0]


def _embed_texts(model: Encoder, texts: Sequence[str], batch: int) -> Float[Tensor, "N C"]:
    tokenizer, device = tokenizer_of(model), model.embedding.weight.device
    rows = [tokenizer.encode(text) for text in texts]
    lengths = [len(row) for row in rows]
    if min(lengths) == 0:
        raise ConfigError("A text to embed must have at least one token; got an empty one.")
    if max(lengths) > model.config.max_len:
        raise ShapeError(
            f"A text must have at most max_len={model.config.max_len} tokens; got {max(lengths)}. "
            "Split it into parts and embed each."
        )
    order = sorted(range(len(rows)), key=lambda i: lengths[i])  # similar lengths: little padding
    vectors = torch.empty(len(rows), model.config.dim, device=device)
    for start in range(0, len(order), batch):
        some = order[start : start + batch]
        counts = torch.tensor([lengths[i] for i in some], device=device)
        tokens = torch.zeros(len(some), int(counts.max()), dtype=torch.long, device=device)
        for row, i in zip(tokens, some, strict=True):
            row[: lengths[i]] = torch.tensor(rows[i])
        with torch.no_grad():
            vectors[some] = model.embed(tokens, lengths=counts).float()
    return vectors


def _check_encoder(model: Encoder) -> None:
    if not isinstance(model, Encoder):
        raise ConfigError(
            f"Only an encoder fills gaps and embeds texts; got {type(model).__name__}. Use "
            "generate for a decoder, translate for an encoder-decoder."
        )


def _name_token(model: Encoder, token: int) -> str:
    """A token as text; special tokens, which decoding drops, as the vocabulary spells them."""
    tokenizer = tokenizer_of(model)
    return tokenizer.decode([token]).strip() or tokenizer.piece(token)


def _shorten(text: str, most: int = 60) -> str:
    return text if len(text) <= most else text[: most - 1] + "…"
