"""A text to translate: the target language's tag, what the model reads, what may be written.

A translator with a coverage (text/coverage.py) reads the characters of its training and writes the
tokens of one language at a time; `restricted=False` leaves both to the model.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache

import torch
from jaxtyping import Bool
from torch import Tensor

from glassformer.errors import ConfigError
from glassformer.generation.continuation import tokenizer_of
from glassformer.models import EncoderDecoder
from glassformer.models.baselines import RecurrentTranslator
from glassformer.text import Tokenizer
from glassformer.text.coverage import TargetCoverage
from glassformer.text.unreadable_spans import Span, cut_unreadable

Translator = EncoderDecoder | RecurrentTranslator


@dataclass(frozen=True, kw_only=True, slots=True, eq=False)
class SourceText:
    """What the model reads, what is copied instead, and what may not be written."""

    text: str  # with the language's tag; empty where nothing can be read
    tokens: tuple[int, ...]
    offset: int  # where the text begins, after the tag
    spans: tuple[Span, ...] = ()
    forbidden: Bool[Tensor, " V"] | None = None  # tokens of other languages
    has_spaces: bool = True  # whether the target language separates words

    @property
    def copied(self) -> tuple[str, ...]:
        """The texts of the spans."""
        return tuple(span.text for span in self.spans)


def read_source(
    model: Translator, text: str, to: str | None = None, *, restricted: bool = True
) -> SourceText:
    """The text as a translator reads it.

    >>> import glassformer as gf
    >>> source = read_source(gf.load("translator"), "I saw a cat 🐱 in the кухня.", "fr")
    >>> source.text, source.copied
    ('<fr> I saw a cat in the.', ('🐱', 'кухня'))
    """
    tokenizer = tokenizer_of(model)
    text = add_language_tag(model, text, to)
    tag, plain = _split_tag(tokenizer, text)
    coverage = tokenizer.coverage if restricted else None
    if coverage is None:
        return SourceText(text=text, tokens=tuple(tokenizer.encode(text)), offset=len(tag))
    found = cut_unreadable(plain, coverage)
    text = tag + found.text if found.text or not found.spans else ""
    target = coverage.targets.get(tag.strip("<> "))
    return SourceText(
        text=text,
        tokens=tuple(tokenizer.encode(text)) if text else (),
        offset=len(tag),
        spans=found.spans,
        forbidden=None if target is None else _forbid(model, target, found.text),
        has_spaces=target is None or target.has_spaces,
    )


def read_any_source(model: Translator, text: str, to: str | None = None) -> SourceText:
    """As `read_source`, to look at: a text of which nothing can be read is read all the same."""
    source = read_source(model, text, to)
    return source if source.tokens else read_source(model, text, to, restricted=False)


def add_language_tag(model: Translator, text: str, to: str | None) -> str:
    """Put the tag of the target language before a text, for models that translate into several."""
    known = tokenizer_of(model).languages
    if not text:
        return text  # an empty text is refused where it is read
    if to is None and (not known or text.startswith(tuple(f"<{code}>" for code in known))):
        return text
    if not known:
        raise ConfigError(
            f"This model translates into one language only; got {to!r}. Leave it out."
        )
    if to not in known:
        given = "no target language was given" if to is None else f"got {to!r}"
        raise ConfigError(
            f"This model translates into {' and '.join(known)}; {given}. Choose one of them."
        )
    return f"<{to}> {text}"


def _split_tag(tokenizer: Tokenizer, text: str) -> tuple[str, str]:
    for code in tokenizer.languages:
        for tag in (f"<{code}> ", f"<{code}>"):
            if text.startswith(tag):
                return tag, text[len(tag) :]
    return "", text


def _forbid(model: Translator, target: TargetCoverage, text: str) -> Bool[Tensor, " V"]:
    """The tokens that do not belong to a language, except for those that are in the text."""
    found = _forbid_others(target, model.config.vocab_size).clone()
    borrowed = _find_borrowed(tokenizer_of(model), target, text)
    found[[*model.special.end, *borrowed]] = False
    return found


@lru_cache(maxsize=16)
def _forbid_others(target: TargetCoverage, vocab_size: int) -> Bool[Tensor, " V"]:
    found = torch.ones(vocab_size, dtype=torch.bool)
    found[list(target.own)] = False
    return found


def _find_borrowed(tokenizer: Tokenizer, target: TargetCoverage, text: str) -> Iterator[int]:
    """Tokens of the text's words: names may be written in any language.

    A token that the language borrows may also be a part of a word, in either case: the X of an
    x-ray, the OK of karaoke.
    """
    for word in _WORD.findall(text):
        for spaced in (word, f" {word}"):
            yield from tokenizer.encode(spaced, add_special=False)
    small = text.casefold()
    for token in target.borrowed:
        written = tokenizer.decode([token]).strip().casefold()
        if written and written in small:
            yield token


_WORD = re.compile(r"\w+")
