"""How tokens read: bytes are joined into the characters they form, and blanks become visible.

token    ␣cat   ␣æ‹¥     ä    ½    ł          pieces as byte-level vocabularies write them
label    ␣cat   ␣…       你   …    …          a character stands at its first token
"""

from collections.abc import Sequence

from glassformer.text.tokenizer import Tokenizer

CONTINUED = "…"  # this token only finishes the character before it
_VISIBLE = {" ": "␣", "\n": "⏎", "\t": "⇥", "\r": "␍"}


def labels(tokenizer: Tokenizer, tokens: Sequence[int]) -> list[str]:
    """One label for each token; together they show the text, nothing hidden in them."""
    shown: list[str] = []
    open_bytes, waiting = (
        b"",
        0,
    )  # of a character that is not finished, and how many tokens they are
    for token in tokens:
        raw = tokenizer.bytes_of(token)
        if raw is None:
            shown += _unfinished(open_bytes, waiting)
            open_bytes, waiting = b"", 0
            shown.append(visible(tokenizer.piece(token)))
            continue
        open_bytes, waiting = open_bytes + raw, waiting + 1
        text = _decoded(open_bytes)
        if text is None and not _may_go_on(open_bytes):
            shown += _unfinished(open_bytes[: len(open_bytes) - len(raw)], waiting - 1)
            open_bytes, waiting = raw, 1
            text = _decoded(open_bytes)
        if text is not None:
            shown += [visible(text), *[CONTINUED] * (waiting - 1)]
            open_bytes, waiting = b"", 0
    return shown + _unfinished(open_bytes, waiting)


def visible(text: str) -> str:
    """Blanks as signs, and characters that would disturb a line as escapes.

    >>> visible(" two\\n\\x07")
    '␣two⏎\\\\x07'
    """
    shown = []
    for character in text:
        if character in _VISIBLE:
            shown.append(_VISIBLE[character])
        elif character.isprintable():
            shown.append(character)
        else:
            shown.append(character.encode("unicode_escape").decode())
    return "".join(shown)


def _decoded(raw: bytes) -> str | None:
    try:
        return raw.decode()
    except UnicodeDecodeError:
        return None


def _may_go_on(raw: bytes) -> bool:
    """Whether bytes are the beginning of something that UTF-8 could still finish."""
    try:
        raw.decode()
    except UnicodeDecodeError as error:
        return error.reason == "unexpected end of data"
    return True


def _unfinished(raw: bytes, n_tokens: int) -> list[str]:
    if not n_tokens:
        return []
    return [raw.decode(errors="backslashreplace"), *[CONTINUED] * (n_tokens - 1)]
