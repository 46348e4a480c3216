"""From one text to another: an encoder reads it, beams of a decoder write it."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from glassformer.errors import ConfigError
from glassformer.generation.beam import beam_search
from glassformer.generation.continuation import tokenizer_of
from glassformer.models import EncoderDecoder
from glassformer.models.baselines import RecurrentTranslator

Translator = EncoderDecoder | RecurrentTranslator

MAX_NEW = 200  # unless told otherwise, or less where a model has less room
TOGETHER = {"cuda": 1 << 16, "cpu": 1 << 12}  # source tokens, padded, of all beams at once


@dataclass(frozen=True, kw_only=True, slots=True)
class Translation:
    """A text that was found, its tokens, and its score: log-probability by length."""

    text: str
    tokens: tuple[int, ...]
    score: float


def translate(
    model: Translator,
    text: str,
    *,
    to: str | None = None,
    beams: int = 4,
    max_new: int | None = None,
) -> str:
    """The best translation of a text; `to` names a language where the model writes several."""
    return translations(model, [text], to=to, beams=beams, max_new=max_new)[0][0].text


def addressed(model: Translator, text: str, to: str | None) -> str:
    """A text with the piece before it that asks for a language, where the model writes several."""
    known = tokenizer_of(model).languages
    if not text:
        return text  # nothing to translate: told where it is read
    if to is None and (not known or text.startswith(tuple(f"<{code}>" for code in known))):
        return text
    if not known:
        raise ConfigError(f"This model writes one language; got to={to!r}. Leave it out.")
    if to not in known:
        came = "none was named" if to is None else f"got to={to!r}"
        raise ConfigError(f"This model writes {' and '.join(known)}; {came}. Use to={known[0]!r}.")
    return f"<{to}> {text}"


def translations(
    model: Translator,
    texts: Sequence[str],
    *,
    to: str | None = None,
    beams: int = 4,
    n_best: int = 1,
    length_penalty: float = 1.0,
    max_new: int | None = None,
) -> list[list[Translation]]:
    """The `n_best` translations of each text, best first; texts of like length go together."""
    if not isinstance(model, EncoderDecoder | RecurrentTranslator):
        raise ConfigError(
            f"Only an encoder-decoder translates; got {type(model).__name__}. Use generate for a "
            "decoder, fill or embed for an encoder."
        )
    tokenizer, special = tokenizer_of(model), model.special
    start = list(special.start) or ([] if special.begin is None else [special.begin])
    if not start:
        raise ConfigError(
            "A translation must begin with a token; this model names none. Set model.special.start."
        )
    source = [tokenizer.encode(addressed(model, text, to)) for text in texts]
    if not texts or min(map(len, source)) == 0:
        raise ConfigError("A text to translate must have at least one token; got an empty one.")
    if max_new is None:
        max_new = max(1, min(MAX_NEW, model.config.max_len - len(start)))
    found: list[list[Translation]] = [[] for _ in texts]
    most = TOGETHER.get(next(model.parameters()).device.type, TOGETHER["cpu"]) // max(1, beams)
    for some in _alike(source, most):
        best = beam_search(
            model,
            [start] * len(some),
            source=[source[i] for i in some],
            max_new=max_new,
            beams=beams,
            n_best=n_best,
            length_penalty=length_penalty,
            stop=special.end,
            never=special.never,
        )
        for i, each in zip(some, best, strict=True):
            found[i] = [
                Translation(text=tokenizer.decode(t.tokens), tokens=t.tokens, score=t.score)
                for t in each
            ]
    return found


def _alike(source: Sequence[Sequence[int]], most: int) -> Iterator[list[int]]:
    """Which texts go together: of like length, with at most so many tokens when padded.

    >>> list(_alike([[1] * 5, [1], [1] * 4, [1, 2]], 10))
    [[1, 3], [2, 0]]
    """
    some: list[int] = []
    for i in sorted(range(len(source)), key=lambda i: len(source[i])):
        if some and (len(some) + 1) * len(source[i]) > most:
            yield some
            some = []
        some.append(i)
    if some:
        yield some
