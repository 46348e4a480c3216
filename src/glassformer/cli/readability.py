"""Whether a model can read a text at all, before it invents an answer to what it cannot read."""

import unicodedata
from typing import Any

from glassformer.cli.known_names import model_names

MOST_UNREADABLE = 0.5


def is_readable(model: Any, text: str) -> bool:
    """Whether most of a text is made of pieces, and for the included models letters, that it knows.

    An included model was trained on English: a text needs a letter or a digit, and most of its
    letters must be Latin. For any other model the vocabulary alone decides: a character that it
    lacks is spelled in bytes or becomes the unknown token.
    """
    if model.name in model_names() and not _is_latin(text):
        return False
    return _fragment_share(model.tokenizer, text) <= MOST_UNREADABLE


def _is_latin(text: str) -> bool:
    """
    >>> _is_latin("Zoë paid 3 €."), _is_latin("Привет"), _is_latin("👍"), _is_latin("")
    (True, False, False, False)
    """
    letters = [c for c in text if unicodedata.category(c).startswith("L")]
    if not letters:
        return any(c.isdigit() for c in text)
    foreign = sum("LATIN" not in unicodedata.name(c, "") for c in letters)
    return foreign <= MOST_UNREADABLE * len(letters)


def _fragment_share(tokenizer: Any, text: str) -> float:
    """The share of characters that the vocabulary lacks: unknown, or spelled in several bytes.

    By character, not by token: one emoji of four bytes must not outweigh three words.
    """
    unknown = {tokenizer.id_of(piece) for piece in ("[UNK]", "<unk>")} - {None}
    characters = [c for c in text if not c.isspace()]
    lacking = {
        c: any(
            token in unknown or _is_fragment(tokenizer.bytes_of(token))
            for token in tokenizer.encode(c, add_special=False)
        )
        for c in set(characters)
    }
    return sum(lacking[c] for c in characters) / max(1, len(characters))


def _is_fragment(raw: bytes | None) -> bool:
    if raw is None:  # a piece of text, not of bytes
        return False
    try:
        raw.decode()
    except UnicodeDecodeError:
        return True
    return False
