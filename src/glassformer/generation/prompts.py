"""Prompts and sources as tensors: checked, padded, encoded."""

from collections.abc import Sequence

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from glassformer.errors import ConfigError, ShapeError
from glassformer.functional import Padding
from glassformer.generation.sampling import check_never
from glassformer.models import Decoder, EncoderDecoder
from glassformer.models.baselines import RecurrentLanguage, RecurrentTranslator

GenerativeModel = Decoder | EncoderDecoder | RecurrentLanguage | RecurrentTranslator


def encode_source(
    model: EncoderDecoder, source: Sequence[Sequence[int]]
) -> tuple[Float[Tensor, "B S C"], Padding | None]:
    """The encoder's output, padded on the right, and what hides the padding."""
    device = model.embedding.weight.device
    lengths = [len(text) for text in source]
    padded = torch.zeros(len(source), max(lengths), dtype=torch.long)
    for row, text in zip(padded, source, strict=True):
        row[: len(text)] = torch.tensor(list(text))
    mask = None if min(lengths) == max(lengths) else Padding(torch.tensor(lengths, device=device))
    return model.encode(padded.to(device), mask=mask), mask


def pad_left(
    prompts: Sequence[Sequence[int]], device: torch.device
) -> tuple[Int[Tensor, "B L"], Int[Tensor, " B"]]:
    """The prompts, padded so that all end in the last column, and how much padding each has."""
    longest = max(len(prompt) for prompt in prompts)
    padded = torch.zeros(len(prompts), longest, dtype=torch.long)
    for row, prompt in zip(padded, prompts, strict=True):
        row[longest - len(prompt) :] = torch.tensor(list(prompt))
    missing = torch.tensor([longest - len(prompt) for prompt in prompts])
    return padded.to(device), missing.to(device)


def check_max_new_tokens(n: int | None) -> None:
    """Reject a number of new tokens below 1; None is the default."""
    if n is not None and n < 1:
        raise ConfigError(f"max_new_tokens must be at least 1; got {n}.")


def check_prompts(
    model: GenerativeModel,
    prompts: Sequence[Sequence[int]],
    source: Sequence[Sequence[int]] | None,
    max_new_tokens: int,
) -> None:
    """Reject prompts, sources and lengths that cannot be decoded."""
    check_max_new_tokens(max_new_tokens)
    if not prompts or min(len(prompt) for prompt in prompts) < 1:
        raise ShapeError(
            "Every prompt needs at least one token, such as the begin token; got lengths "
            f"{[len(prompt) for prompt in prompts]}."
        )
    longest, most = max(len(prompt) for prompt in prompts), model.config.max_len
    if longest >= most:
        raise ShapeError(
            f"A prompt must be shorter than max_len={most} to leave room for new tokens; got "
            f"{longest} tokens. Shorten it."
        )
    if longest + max_new_tokens > most:
        raise ShapeError(
            f"Prompt and new tokens must fit max_len={most}; got {longest} + {max_new_tokens}. "
            f"Generate at most {most - longest} new tokens or shorten the prompt."
        )
    if isinstance(model, EncoderDecoder | RecurrentTranslator) != (source is not None):
        raise ConfigError(
            "source is the input of an encoder-decoder, and required there; got "
            f"source={'given' if source else None} for {type(model).__name__}."
        )
    if source is not None and (len(source) != len(prompts) or min(map(len, source)) < 1):
        raise ShapeError(
            f"source needs one text of at least one token per prompt; got lengths "
            f"{[len(text) for text in source]} for {len(prompts)} prompts."
        )


def check_excluded(
    model: GenerativeModel,
    prompts: Sequence[Sequence[int]],
    never: Sequence[int],
    forbidden: Bool[Tensor, "B V"] | None,
) -> None:
    """Reject excluded tokens outside the vocabulary, or a mask that has not a row per prompt."""
    check_never(never, model.config.vocab_size)
    shape = (len(prompts), model.config.vocab_size)
    if forbidden is not None and forbidden.shape != shape:
        raise ShapeError(
            f"forbidden must be (prompts, vocab_size), here {shape}; got {tuple(forbidden.shape)}."
        )
