"""Tokens and shades, the smallest parts of a drawing."""

import unicodedata

from rich.cells import cell_len, set_cell_size
from rich.text import Text

HIDDEN = "·"
SHADES = "░▒▓█"
_MOST_CHARACTERS = 200  # of a token: a file can contain tokens of any length
_LEFT_TO_RIGHT = "\u200e"  # zero width; keeps the text beside it in place
_FROM_THE_RIGHT = ("R", "AL", "AN")
# Terminals disagree on how wide a character is when one of these follows it.
_VARIANTS = "\ufe0e\ufe0f"  # variation selectors: text or emoji
_SKINS = "\U0001f3fb\U0001f3fc\U0001f3fd\U0001f3fe\U0001f3ff"


def shade(share: float) -> str:
    """A block character, the fuller the closer `share` is to 1; a space for 0.

    >>> "".join(shade(share) for share in (0.0, 0.1, 0.3, 0.6, 1.0))
    ' ░▒▓█'
    """
    if not share > 0:
        return " "
    return SHADES[min(int(share * len(SHADES)), len(SHADES) - 1)]


def label(token: str, most: int | None = None) -> Text:
    """A token as a table cell: on one line, spaces made visible, at most `most` cells wide.

    >>> label(" sat\\n").plain
    '␣sat\\\\n'
    """
    return Text(isolate_direction(visible_token(token, most)), no_wrap=True, overflow="ellipsis")


def visible_token(token: str, most: int | None = None, *, unseen: str | None = None) -> str:
    """A token in printable characters whose width all terminals agree on.

    Other characters are escaped, or replaced by `unseen`.

    >>> visible_token("\\x1b[31m"), visible_token("hippopotamus", 6)
    ('\\\\x1b[31m', 'hippo…')
    """
    cut = len(token) > _MOST_CHARACTERS
    token = token[:_MOST_CHARACTERS] if cut else token
    bare = token.strip(" ")
    before = len(token) - len(token.lstrip(" ")) if bare else len(token)
    after = len(token) - len(token.rstrip(" ")) if bare else 0
    middle = "".join(_visible(character, unseen) for character in bare)
    if middle and cell_len(middle[0]) == 0:  # a combining mark needs a base character
        middle = f"◌{middle}"
    text = "␣" * before + middle + "␣" * after + "…" * cut
    if most is None or cell_len(text) <= most:
        return text
    return set_cell_size(text, most - 1).rstrip() + "…"


def isolate_direction(text: str) -> str:
    """Mark right-to-left text, so that numbers beside it stay in place."""
    turns = any(unicodedata.bidirectional(character) in _FROM_THE_RIGHT for character in text)
    return f"{_LEFT_TO_RIGHT}{text}{_LEFT_TO_RIGHT}" if turns else text


def split_graphemes(text: str) -> list[str]:
    """Split a text into characters with their combining marks.

    >>> len(split_graphemes("e\\u0301a"))
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
