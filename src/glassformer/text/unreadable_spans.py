"""What a model cannot read, cut out of a text so that it can be copied instead.

    I saw spiders 🕷️ in the кухня.   ─→   I saw spiders in the.      what the model reads
                                          🕷️ after "spiders", кухня before the last mark

A character can be read if sources in training had it, or another way to write it: ’ is read as ',
ï as i. A word with a letter that cannot be read is copied whole, and so are amounts such as £3.
"""

import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from glassformer.text.coverage import Coverage

Place = Literal["start", "middle", "before the last mark", "end"]
Range = tuple[int, int]

_MARKS = frozenset(".,;:!?")


@dataclass(frozen=True, kw_only=True, slots=True)
class Span:
    """A part of a text that is copied, and where it was."""

    text: str
    place: Place
    offset: int  # in the text that is read
    is_spaced: tuple[bool, bool]  # whether a space was before and after it


@dataclass(frozen=True, kw_only=True, slots=True)
class ReadableText:
    """A text as the model reads it, and what was cut out of it, in order."""

    text: str
    spans: tuple[Span, ...] = ()


@dataclass(frozen=True, slots=True)
class _Character:
    """A character with its marks, and how the model reads it; None if it cannot."""

    text: str
    read: str | None

    @property
    def is_word(self) -> bool:
        """Whether it can be read, and is a letter or a digit."""
        return self.read is not None and self.read[:1].isalnum()

    @property
    def is_letter(self) -> bool:
        return self.text[0].isalpha()

    @property
    def is_space(self) -> bool:
        return self.read == " "


def cut_unreadable(text: str, coverage: Coverage) -> ReadableText:
    """The text without what cannot be read; all of it is copied if no letter or digit is left.

    >>> coverage = Coverage(characters=frozenset("Isaw .'"), plain={"’": "'"}, targets={})
    >>> found = cut_unreadable("I saw 🕷️ жук.", coverage)
    >>> found.text, [(span.text, span.place) for span in found.spans]
    ('I saw.', [('🕷️ жук', 'before the last mark')])
    """
    if _is_known(text, coverage):
        return ReadableText(text=text)
    characters = _split(text, coverage)
    ranges = _find_ranges(characters)
    read, spans, done = "", list[Span](), 0
    for start, stop in ranges:
        read += _join(characters[done:start])
        before = start > 0 and characters[start - 1].is_space
        after = stop < len(characters) and characters[stop].is_space
        following = _join(characters[stop : stop + 1]) or " "
        if read.endswith(" ") and following in {" ", *_MARKS}:
            read = read.rstrip()  # one space is enough, and none goes before a mark
        spans.append(
            Span(
                text="".join(each.text for each in characters[start:stop]),
                place=_name_place(characters, start, stop),
                offset=len(read),
                is_spaced=(before, after),
            )
        )
        done = stop + (after and not read)
    read += _join(characters[done:])
    if spans and not any(character.isalnum() for character in read):
        whole = Span(text=text, place="start", offset=0, is_spaced=(False, False))
        return ReadableText(text="", spans=(whole,))
    return ReadableText(text=read, spans=tuple(spans))


def _is_known(text: str, coverage: Coverage) -> bool:
    """Whether sources in training write every character so; spaces other than " " they do not."""
    return (
        text.isprintable()
        and coverage.characters.issuperset(text.replace(" ", ""))
        and unicodedata.is_normalized("NFC", text)
    )


def _split(text: str, coverage: Coverage) -> list[_Character]:
    """Characters, each with the combining and invisible ones that follow it."""
    found: list[str] = []
    for character in text:
        if found and unicodedata.category(character) in ("Mn", "Mc", "Me", "Cf"):
            found[-1] += character
        else:
            found.append(character)
    return [_Character(each, _read_plainly(each, coverage)) for each in found]


def _read_plainly(character: str, coverage: Coverage) -> str | None:
    """The character as sources in training write it; None if they never do."""
    if character.isspace():
        return " "
    known = coverage.characters
    written = ""
    for each in unicodedata.normalize("NFC", character):
        read = each if each in known else coverage.plain.get(each)
        if read is None:  # without its accents, which have a combining class
            parts = unicodedata.normalize("NFD", each)
            read = "".join(part for part in parts if not unicodedata.combining(part))
            if not read or not known.issuperset(read):
                return None
        written += read
    return written


def _find_ranges(characters: Sequence[_Character]) -> list[Range]:
    """Where the spans are; letters that can be read lie between any two of them."""
    single = [(i, i + 1) for i, each in enumerate(characters) if each.read is None]
    whole = [_widen(characters, *each) for each in _merge(characters, single)]
    ranges = _merge(characters, whole)
    if ranges and not any(each.is_word for each in characters[: ranges[0][0]]):
        stop = ranges[0][1]
        while stop < len(characters) and not (
            characters[stop].is_word or characters[stop].is_space
        ):
            stop += 1  # marks that belong to the first words
        ranges[0] = (0, stop)
    return ranges


def _merge(characters: Sequence[_Character], ranges: Sequence[Range]) -> list[Range]:
    """Ranges with nothing but digits, marks and spaces between them become one."""
    merged: list[Range] = []
    for start, stop in ranges:
        between = characters[merged[-1][1] : start] if merged else []
        if merged and not any(each.is_word and each.is_letter for each in between):
            merged[-1] = (merged[-1][0], max(stop, merged[-1][1]))
        else:
            merged.append((start, stop))
    return merged


def _widen(characters: Sequence[_Character], start: int, stop: int) -> Range:
    """The whole words at both ends of a range, where it lies inside of one or beside digits."""
    left = start > 0 and characters[start - 1].is_word
    right = stop < len(characters) and characters[stop].is_word
    is_inside = left and right and _is_joining(characters[start:stop])
    if left and (is_inside or characters[start].is_letter or _is_digit(characters[start - 1])):
        while start > 0 and not characters[start - 1].is_space:
            start -= 1
        while not characters[start].is_word and characters[start].read is not None:
            start += 1
    if right and (is_inside or characters[stop - 1].is_letter or _is_digit(characters[stop])):
        while stop < len(characters) and not characters[stop].is_space:
            stop += 1
        while not characters[stop - 1].is_word and characters[stop - 1].read is not None:
            stop -= 1
    return start, stop


def _is_joining(characters: Sequence[_Character]) -> bool:
    """Whether these hold a word together, as @ and _ do, and no emoji does."""
    return not any(
        each.is_space or unicodedata.category(each.text[0]) == "So" for each in characters
    )


def _is_digit(character: _Character) -> bool:
    return character.text[0].isdigit()


def _name_place(characters: Sequence[_Character], start: int, stop: int) -> Place:
    after = characters[stop:]
    if start == 0:
        return "start"
    if all(each.is_space for each in after):
        return "end"
    return "middle" if any(each.is_word for each in after) else "before the last mark"


def _join(characters: Sequence[_Character]) -> str:
    return "".join(each.read or "" for each in characters)
