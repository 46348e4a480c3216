"""Labels of tokens: bytes are joined into characters, and whitespace becomes visible.

token    ␣cat   ␣æ‹¥     ä    ½    ł          pieces as byte-level vocabularies write them
label    ␣cat   ␣…       你   …    …          a character is shown at its first token
"""

from collections.abc import Sequence

from glassformer.text.tokenizer import Tokenizer

CONTINUED = "…"  # this token only completes the character before it
_VISIBLE = {" ": "␣", "\n": "⏎", "\t": "⇥", "\r": "␍"}


def labels(tokenizer: Tokenizer, tokens: Sequence[int]) -> list[str]:
    """One label per token; together they show the whole text."""
    shown: list[str] = []
    open_bytes, waiting = (
        b"",
        0,
    )  # bytes of an incomplete character, and their number of tokens
    for token in tokens:
        raw = tokenizer.bytes_of(token)
        if raw is None:
            shown += _label_incomplete(open_bytes, waiting)
            open_bytes, waiting = b"", 0
            shown.append(make_visible(tokenizer.piece(token)))
            continue
        open_bytes, waiting = open_bytes + raw, waiting + 1
        text = _try_decode(open_bytes)
        if text is None and not _is_valid_prefix(open_bytes):
            shown += _label_incomplete(open_bytes[: len(open_bytes) - len(raw)], waiting - 1)
            open_bytes, waiting = raw, 1
            text = _try_decode(open_bytes)
        if text is not None:
            shown += [make_visible(text), *[CONTINUED] * (waiting - 1)]
            open_bytes, waiting = b"", 0
    return shown + _label_incomplete(open_bytes, waiting)


def make_visible(text: str) -> str:
    """Whitespace as symbols, and control characters as escapes.

    >>> make_visible(" two\\n\\x07")
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


def _try_decode(raw: bytes) -> str | None:
    try:
        return raw.decode()
    except UnicodeDecodeError:
        return None


def _is_valid_prefix(raw: bytes) -> bool:
    """Whether these bytes are valid UTF-8 so far; the last character may be incomplete."""
    try:
        raw.decode()
    except UnicodeDecodeError as error:
        return error.reason == "unexpected end of data"
    return True


def _label_incomplete(raw: bytes, n_tokens: int) -> list[str]:
    if not n_tokens:
        return []
    return [raw.decode(errors="backslashreplace"), *[CONTINUED] * (n_tokens - 1)]
