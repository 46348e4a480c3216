"""The words of the field in both languages, and a check that a pair of texts keeps to them."""

import re
import tomllib
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cache
from importlib.resources import files

# What is not prose: {placeholders}, --options, `code`, calls and dotted names like decoder.2.cross.
_NOT_PROSE = re.compile(r"\{\w+\}|--[a-z][a-z-]*|`[^`]*`|\b\w+\([^)]*\)|\b\w+(?:\.\w+)+")


@dataclass(frozen=True, kw_only=True, slots=True)
class Term:
    """A term, how else it is written, what it means, and which words are not used for it."""

    en: str
    zh: str
    about_en: str
    about_zh: str
    also_en: list[str] = field(default_factory=list)
    also_zh: list[str] = field(default_factory=list)
    avoid_en: list[str] = field(default_factory=list)
    avoid_zh: list[str] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class Glossary:
    """Groups of terms by their titles (English, Chinese), and phrases that no text uses."""

    groups: dict[tuple[str, str], list[Term]]
    avoid_en: list[str]
    avoid_zh: list[str]

    @property
    def terms(self) -> list[Term]:
        """The terms of all groups, in order."""
        return [term for terms in self.groups.values() for term in terms]

    def missing_terms(self, english: str, chinese: str) -> Iterator[str]:
        """The terms of an English text whose translation its Chinese text lacks.

        >>> list(read_glossary().missing_terms("Apply the causal mask.", "施加遮罩。"))
        ['causal mask → 因果掩码']
        """
        text = _NOT_PROSE.sub(" ", english)
        for pattern, term in _patterns(self):
            text, n = pattern.subn(" ", text)  # so that “causal mask” is not a “mask” again
            if n and not any(word in chinese for word in (term.zh, *term.also_zh)):
                yield f"{term.en} → {term.zh}"

    def avoided_words(self, text: str, code: str) -> list[str]:
        """The words of a text that the glossary avoids.

        >>> read_glossary().avoided_words("A linear layer and a bend; nothing came.", "en")
        ['came', 'a bend']
        """
        text = _NOT_PROSE.sub(" ", text)
        if code == "zh":
            words = [*self.avoid_zh, *(word for term in self.terms for word in term.avoid_zh)]
            return [word for word in words if word in text]
        words = [*self.avoid_en, *(word for term in self.terms for word in term.avoid_en)]
        return [word for word in words if re.search(rf"\b{word}\b", text, re.IGNORECASE)]


def _patterns(glossary: Glossary) -> list[tuple[re.Pattern[str], Term]]:
    """What to look for in an English text, long terms before their parts."""
    spelt = [(word, term) for term in glossary.terms for word in (term.en, *term.also_en)]
    spelt.sort(key=lambda pair: -len(pair[0]))
    return [(_pattern(word), term) for word, term in spelt]


@cache
def _pattern(word: str) -> re.Pattern[str]:
    """A word or its plural; a name keeps its capitals: Transformer, but not transformers."""
    return re.compile(rf"\b{re.escape(word)}s?\b", re.IGNORECASE if word.islower() else 0)


@cache
def read_glossary() -> Glossary:
    """Read the glossary of the catalogues."""
    content = files("glassformer.languages").joinpath("glossary.toml").read_text("utf-8")
    read = tomllib.loads(content)
    groups = {
        (group["en"], group["zh"]): [Term(**term) for term in group["terms"]]
        for group in read["groups"]
    }
    return Glossary(groups, read["avoid_en"], read["avoid_zh"])
