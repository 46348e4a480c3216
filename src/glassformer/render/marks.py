"""Tokens and shades: the small marks that drawings are made of."""

import unicodedata

from rich.cells import cell_len, set_cell_size
from rich.text import Text

HIDDEN = "·"
SHADES = "░▒▓█"
_MOST_CHARACTERS = 200  # of a token: a file may call anything one
_LEFT_TO_RIGHT = "\u200e"  # no cell wide; what stands beside it keeps its place
_FROM_THE_RIGHT = ("R", "AL", "AN")
# Terminals do not agree how wide these make what stands before them.
_VARIANTS = "\ufe0e\ufe0f"  # of one character, as text or as a picture
_SKINS = "\U0001f3fb\U0001f3fc\U0001f3fd\U0001f3fe\U0001f3ff"


def shade(share: float) -> str:
    """A block that is fuller the nearer `share` is to 1; a space for 0.

    >>> "".join(shade(share) for share in (0.0, 0.1, 0.3, 0.6, 1.0))
    ' ░▒▓█'
    """
    if not share > 0:
        return " "
    return SHADES[min(int(share * len(SHADES)), len(SHADES) - 1)]


def label(token: str, most: int | None = None) -> Text:
    """A token as it can stand in a table: on one line, blanks made visible, at most so many cells.

    >>> label(" sat\\n").plain
    '␣sat\\\\n'
    """
    return Text(in_place(shown(token, most)), no_wrap=True, overflow="ellipsis")


def shown(token: str, most: int | None = None, *, unseen: str | None = None) -> str:
    """A token in characters that every terminal gives the same width; none that steers it.

    What cannot be seen is written out, or as the sign `unseen`.

    >>> shown("\\x1b[31m"), shown("hippopotamus", 6)
    ('\\\\x1b[31m', 'hippo…')
    """
    cut = len(token) > _MOST_CHARACTERS
    token = token[:_MOST_CHARACTERS] if cut else token
    bare = token.strip(" ")
    before = len(token) - len(token.lstrip(" ")) if bare else len(token)
    after = len(token) - len(token.rstrip(" ")) if bare else 0
    middle = "".join(_visible(character, unseen) for character in bare)
    if middle and cell_len(middle[0]) == 0:  # an accent needs something to stand on
        middle = f"◌{middle}"
    text = "␣" * before + middle + "␣" * after + "…" * cut
    if most is None or cell_len(text) <= most:
        return text
    return set_cell_size(text, most - 1).rstrip() + "…"


def in_place(text: str) -> str:
    """Text written from the right, so marked that numbers beside it stay where they are."""
    turns = any(unicodedata.bidirectional(character) in _FROM_THE_RIGHT for character in text)
    return f"{_LEFT_TO_RIGHT}{text}{_LEFT_TO_RIGHT}" if turns else text


def signs(text: str) -> list[str]:
    """Characters with the accents that belong to them.

    >>> len(signs("e\\u0301a"))
    2
    """
    found: list[str] = []
    for character in text:
        if found and cell_len(character) == 0:
            found[-1] += character
        else:
            found.append(character)
    return found


def _visible(character: str, unseen: str | None) -> str:
    if character in _VARIANTS:
        return ""
    if character.isprintable() and character not in _SKINS:
        return character
    return character.encode("unicode_escape").decode("ascii") if unseen is None else unseen
