"""A text to translate: the target language's tag, what the model reads, what may be written.

A translator with a coverage (text/coverage.py) reads the characters of its training and writes the
tokens of one language at a time; `restricted=False` leaves both to the model.
"""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import chain
from weakref import WeakKeyDictionary

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
    forbidden: Bool[Tensor, " V"] | None = None  # of other languages, or not on the shortlist
    is_shortened: bool = False  # whether only tokens of a shortlist may be written
    has_spaces: bool = True  # whether the target language separates words

    @property
    def copied(self) -> tuple[str, ...]:
        """The texts of the spans."""
        return tuple(span.text for span in self.spans)


def read_source(
    model: Translator,
    text: str,
    to: str | None = None,
    *,
    restricted: bool = True,
    shortlist: bool = False,
) -> SourceText:
    """The text as a translator reads it.

    >>> import glassformer as gf
    >>> source = read_source(gf.load("translator"), "I saw a cat 🐱 in the кухня.", "fr")
    >>> source.text, source.copied
    ('<fr> I saw a cat in the.', ('🐱', 'кухня'))
    """
    return read_sources(model, [text], to, restricted=restricted, shortlist=shortlist)[0]


def read_sources(
    model: Translator,
    texts: Sequence[str],
    to: str | None = None,
    *,
    restricted: bool = True,
    shortlist: bool = False,
) -> list[SourceText]:
    """As `read_source` reads each; texts, and words that many of them have, are encoded at once.

    With `shortlist`, only tokens that are likely with those of the text may be written.
    """
    if shortlist and tokenizer_of(model).shortlist is None:
        raise ConfigError(
            "shortlist=True needs a list of the tokens that go with each other, "
            "shortlist.safetensors; this model has none. Leave it out, or make one with "
            "recipes/data/translator_shortlist.py."
        )
    found = _read_sources(model, texts, to, restricted=restricted)
    return [_shorten(model, source) for source in found] if shortlist else found


def _read_sources(
    model: Translator, texts: Sequence[str], to: str | None, *, restricted: bool
) -> list[SourceText]:
    tokenizer = tokenizer_of(model)
    languages = tokenizer.languages
    tagged = [_add_tag(languages, text, to) for text in texts]
    coverage = tokenizer.coverage if restricted else None
    parts = [_split_tag(languages, text) for text in tagged]
    if coverage is None:
        read = zip(parts, tagged, tokenizer.encode_many(tagged), strict=True)
        return [
            SourceText(text=text, tokens=tuple(tokens), offset=len(tag))
            for (tag, _), text, tokens in read
        ]
    cut = [cut_unreadable(plain, coverage) for _, plain in parts]
    tagged = [
        tag + found.text if found.text or not found.spans else ""
        for (tag, _), found in zip(parts, cut, strict=True)
    ]
    words = _encode_words(tokenizer, (found.text for found in cut))
    codes = [tag.strip("<> ") for tag, _ in parts]
    rules = {
        code: _find_rule(model, coverage.targets[code])
        for code in {*codes} & coverage.targets.keys()
    }
    ruled = [i for i, code in enumerate(codes) if code in rules]
    masks = _forbid([rules[codes[i]] for i in ruled], [cut[i].text for i in ruled], words)
    forbidden = dict(zip(ruled, masks, strict=True))
    sources = []
    for i, tokens in enumerate(tokenizer.encode_many(tagged)):
        rule = rules.get(codes[i])
        sources.append(
            SourceText(
                text=tagged[i],
                tokens=tuple(tokens) if tagged[i] else (),
                offset=len(parts[i][0]),
                spans=cut[i].spans,
                forbidden=forbidden.get(i),
                has_spaces=rule is None or rule.target.has_spaces,
            )
        )
    return sources


def _shorten(model: Translator, source: SourceText) -> SourceText:
    """Forbid what is not on the shortlist; nothing more where a token was in no training pair.

    Tokens of the text itself may be written, as names are.
    """
    tokenizer = tokenizer_of(model)
    code = _split_tag(tokenizer.languages, source.text)[0].strip("<> ")
    target = None if tokenizer.shortlist is None else tokenizer.shortlist.targets.get(code)
    allowed = None if target is None else target.select(source.tokens)
    if allowed is None:
        return source
    allowed[[*source.tokens, *model.special.end]] = True
    forbidden = torch.ones(model.config.vocab_size, dtype=torch.bool)  # it may be padded
    forbidden[: len(allowed)] = ~torch.from_numpy(allowed)
    if source.forbidden is not None:
        forbidden |= source.forbidden
    return replace(source, forbidden=forbidden, is_shortened=True)


def read_any_source(model: Translator, text: str, to: str | None = None) -> SourceText:
    """As `read_source`, to look at: a text of which nothing can be read is read all the same."""
    source = read_source(model, text, to)
    return source if source.tokens else read_source(model, text, to, restricted=False)


def add_language_tag(model: Translator, text: str, to: str | None) -> str:
    """Put the tag of the target language before a text, for models that translate into several."""
    return _add_tag(tokenizer_of(model).languages, text, to)


def _add_tag(known: Sequence[str], text: str, to: str | None) -> str:
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


def _split_tag(languages: Sequence[str], text: str) -> tuple[str, str]:
    for code in languages:
        for tag in (f"<{code}> ", f"<{code}>"):
            if text.startswith(tag):
                return tag, text[len(tag) :]
    return "", text


class _WritingRule:
    """Which tokens a translation into one language may have."""

    def __init__(self, model: Translator, target: TargetCoverage) -> None:
        tokenizer = tokenizer_of(model)
        self.target = target
        self.others = torch.ones(model.config.vocab_size, dtype=torch.bool)
        self.others[[*target.own, *model.special.end]] = False
        written = ((token, tokenizer.decode([token]).strip()) for token in target.borrowed)
        self.borrowed = {token: text.casefold() for token, text in written if text}

    def find_borrowed(self, text: str, words: Mapping[str, Sequence[int]]) -> Iterator[int]:
        """Tokens of the text's words: names may be written in any language.

        A token that the language borrows may also be a part of a word, in either case: the X of an
        x-ray, the OK of karaoke.
        """
        for word in _WORD.findall(text):
            yield from words[word]
        small = text.casefold()
        for token, written in self.borrowed.items():
            if written in small:
                yield token


def _forbid(
    rules: Sequence[_WritingRule], texts: Sequence[str], words: Mapping[str, Sequence[int]]
) -> Bool[Tensor, "n V"]:
    """For each text the tokens of other languages, except for those that are in it."""
    if not rules:
        return torch.zeros(0, 1, dtype=torch.bool)
    found = torch.stack([rule.others for rule in rules])
    borrowed = [[*rule.find_borrowed(text, words)] for rule, text in zip(rules, texts, strict=True)]
    counts = torch.tensor([len(tokens) for tokens in borrowed])
    rows = torch.arange(len(rules)).repeat_interleave(counts)
    found[rows, torch.tensor([*chain.from_iterable(borrowed)], dtype=torch.long)] = False
    return found


_rules: WeakKeyDictionary[Tokenizer, list[_WritingRule]] = WeakKeyDictionary()


def _find_rule(model: Translator, target: TargetCoverage) -> _WritingRule:
    """The rule of a language, which is made once: languages have thousands of tokens."""
    known = _rules.setdefault(tokenizer_of(model), [])
    for rule in known:
        if rule.target is target and len(rule.others) == model.config.vocab_size:
            return rule
    known.append(_WritingRule(model, target))
    return known[-1]


def _encode_words(tokenizer: Tokenizer, texts: Iterable[str]) -> dict[str, list[int]]:
    """The tokens of each word, with a space before it and without."""
    words = list(dict.fromkeys(word for text in texts for word in _WORD.findall(text)))
    spelled = [*words, *(f" {word}" for word in words)]
    tokens = tokenizer.encode_many(spelled, add_special=False)
    return {
        word: bare + spaced
        for word, bare, spaced in zip(words, tokens, tokens[len(words) :], strict=False)
    }


_WORD = re.compile(r"\w+")
