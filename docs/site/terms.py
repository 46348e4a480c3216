"""Terms of the glossary in the chapters: a link at the first use, and where each term is used."""

import re
from collections.abc import Iterator
from functools import cache

from glassformer.languages.glossary import Term, read_glossary

# Code, formulas, links, headings, references, tables and markup.
_PROTECTED = re.compile(
    r"(^```[\s\S]*?^```|`[^`\n]+`|\$[^$]+\$|\[[^\]]*\]\([^)]*\)|^#[^\n]*|^\{\{[^\n]*|^\|[^\n]*|<[^>\n]+>)",
    re.MULTILINE,
)


def term_anchor(term: Term) -> str:
    """The name of a term's place in the glossary.

    >>> term_anchor(next(term for term in read_glossary().terms if term.en == "causal mask"))
    'term-causal-mask'
    """
    return f"term-{re.sub('[^a-z0-9]+', '-', term.en.lower())}"


def use_anchor(term: Term) -> str:
    """The name of the place in a chapter where the term is first used."""
    return term_anchor(term).replace("term-", "use-", 1)


def link_terms(markdown: str, code: str, glossary: str) -> str:
    """A chapter in which the first use of each term leads to the glossary's page.

    >>> link_terms("`mask`: two masks, one mask", "en", "g.html")
    '`mask`: two <a class="term" id="use-mask" href="g.html#term-mask">masks</a>, one mask'
    """
    seen: set[str] = set()

    def link(found: re.Match[str]) -> str:
        term = _find_term(found[0], code)
        if term is None or term.en in seen:
            return found[0]
        seen.add(term.en)
        target = f"{glossary}#{term_anchor(term)}"
        return f'<a class="term" id="{use_anchor(term)}" href="{target}">{found[0]}</a>'

    parts = _PROTECTED.split(markdown)
    parts[::2] = [_pattern(code).sub(link, part) for part in parts[::2]]
    return "".join(parts)


def used_terms(linked: str) -> set[str]:
    """The places of first uses in a chapter whose terms are linked."""
    return set(re.findall(r'id="(use-[a-z0-9-]+)"', linked))


def headed_terms(markdown: str, code: str) -> set[str]:
    """The terms, by their English names, that are in a heading of the chapter."""
    headings = " ".join(re.findall(r"^#+ (.*)$", markdown, re.MULTILINE))
    found = (_find_term(match[0], code) for match in _pattern(code).finditer(headings))
    return {term.en for term in found if term is not None}


def _words(code: str) -> Iterator[tuple[str, Term]]:
    for term in read_glossary().terms:
        words = (term.en, *term.also_en) if code == "en" else (term.zh, *term.also_zh)
        # A single Chinese character is part of too many other words: 头 of 开头, 值 of 数值.
        yield from ((word, term) for word in words if code == "en" or len(word) > 1)


@cache
def _table(code: str) -> dict[str, Term]:
    table: dict[str, Term] = {}
    for word, term in _words(code):
        table.setdefault(word, term)
    return table


@cache
def _pattern(code: str) -> re.Pattern[str]:
    """Every word, long ones before their parts."""
    words = sorted(_table(code), key=len, reverse=True)
    any_word = "|".join(re.escape(word).replace(r"\ ", r"\s+") for word in words)
    if code == "zh":
        return re.compile(rf"(?<![A-Za-z])(?:{any_word})(?![A-Za-z])")
    return re.compile(rf"(?<![\w-])(?:{any_word})s?(?![\w-])", re.IGNORECASE)


def _find_term(text: str, code: str) -> Term | None:
    """The term of a word; a name keeps its capitals: Transformer, but not transformers."""
    text = " ".join(text.split())
    table = _table(code)
    for word in (text, text.removesuffix("s")):
        if word in table:
            return table[word]
        if word.lower() in table:
            return table[word.lower()]
    return None
