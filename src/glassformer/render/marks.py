"""Tokens and shades: the small marks that drawings are made of."""

from rich.text import Text

HIDDEN = "·"
SHADES = "░▒▓█"


def shade(share: float) -> str:
    """A block that is fuller the nearer `share` is to 1; a space for 0.

    >>> "".join(shade(share) for share in (0.0, 0.1, 0.3, 0.6, 1.0))
    ' ░▒▓█'
    """
    if not share > 0:
        return " "
    return SHADES[min(int(share * len(SHADES)), len(SHADES) - 1)]


def label(token: str) -> Text:
    """A token as it can stand in a table: whole, on one line, blanks made visible.

    >>> label(" sat\\n").plain
    '␣sat\\\\n'
    """
    bare = token.strip(" ")
    before = len(token) - len(token.lstrip(" ")) if bare else len(token)
    after = len(token) - len(token.rstrip(" ")) if bare else 0
    shown = "".join(c if c.isprintable() else repr(c)[1:-1] for c in bare)
    return Text("␣" * before + shown + "␣" * after, no_wrap=True, overflow="ellipsis")
