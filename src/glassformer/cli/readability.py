"""Whether a model can read a text at all, before it invents an answer to what it cannot read."""

import unicodedata
from typing import Any

from glassformer.cli.foreign_words import count_function_words, split_words
from glassformer.cli.known_names import model_names

MOST_UNREADABLE = 0.5
_LEAST_WORDS = 3
_MANY_PIECES = 2  # per word; English has 1.2


def is_readable(model: Any, text: str) -> bool:
    """Whether most of a text is made of pieces, and for the included models letters, that it knows.

    An included model was trained on English: a text needs a letter or a digit, most of its letters
    must be Latin, and its function words must not be those of another language. For any other model
    the vocabulary alone decides: a character that it lacks is spelled in bytes or becomes the
    unknown token.
    """
    is_included = model.name in model_names()
    if is_included and (not _is_latin(text) or _is_foreign(model.tokenizer, text)):
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


def _is_foreign(tokenizer: Any, text: str) -> bool:
    """Whether a text is in another language than English, as far as its function words tell.

    A single foreign one is enough where there is no English one and the vocabulary, which was
    learned from English, cuts words to pieces.
    """
    n_foreign, n_english = count_function_words(text)
    if n_foreign >= 2 or n_foreign == 0:
        return n_foreign > n_english
    words = split_words(text)
    if n_english or len(words) < _LEAST_WORDS:
        return False
    n_pieces = sum(len(tokenizer.encode(f" {word}", add_special=False)) for word in words)
    return n_pieces >= _MANY_PIECES * len(words)


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
