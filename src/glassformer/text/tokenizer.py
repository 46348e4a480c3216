"""From text to token ids and back."""

import json
import re
from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import cache, cached_property
from typing import Any

from glassformer.errors import DataError
from glassformer.text.tokenizer_file import check_known, library_errors, read_backend


class Tokenizer(ABC):
    """What every tokenizer can do."""

    kind: str
    chat_template: str | None
    n_known: int | None = None  # ids for which the model that it belongs to has vectors

    @property
    @abstractmethod
    def vocab_size(self) -> int:
        """How many ids there are."""

    @abstractmethod
    def encode(self, text: str, *, add_special: bool = True) -> list[int]:
        """The ids of a text, with the tokens that the model expects around it."""

    def encode_many(self, texts: Sequence[str], *, add_special: bool = True) -> list[list[int]]:
        """The ids of many texts; the same as one by one, and where it can be, faster."""
        return [self.encode(text, add_special=add_special) for text in texts]

    @abstractmethod
    def decode(self, tokens: Sequence[int]) -> str:
        """The text of ids; special tokens are left out."""

    @abstractmethod
    def piece(self, token: int) -> str:
        """A token as the vocabulary writes it."""

    @abstractmethod
    def bytes_of(self, token: int) -> bytes | None:
        """The bytes that a token stands for; None where it reads as its piece, as special ones."""

    @property
    def languages(self) -> tuple[str, ...]:
        """Those that a piece of its own, such as <zh> before a text, asks a translator for."""
        return ()

    @abstractmethod
    def id_of(self, piece: str) -> int | None:
        """The id of a piece, None where the vocabulary has none."""

    @abstractmethod
    def files(self) -> dict[str, bytes]:
        """What must be saved, by file name."""


class JsonTokenizer(Tokenizer):
    """A tokenizer of the `tokenizers` library, whole in one `tokenizer.json`.

    >>> from tokenizers import Tokenizer, models, pre_tokenizers
    >>> words = Tokenizer(models.WordLevel({"the": 0, "cat": 1, "?": 2}, unk_token="?"))
    >>> words.pre_tokenizer = pre_tokenizers.Whitespace()
    >>> JsonTokenizer(words).encode("the cat sat")
    [0, 1, 2]
    """

    kind = "json"

    def __init__(self, backend: Any, *, chat_template: str | None = None) -> None:
        self.backend = backend
        self.backend.no_padding()  # what a file may ask for: batches are padded where they are made
        self.backend.no_truncation()
        self.chat_template = chat_template

    @classmethod
    def from_json(cls, text: str, where: str) -> "JsonTokenizer":
        """The tokenizer that a `tokenizer.json` describes."""
        backend = read_backend(text, where)
        with library_errors(f"{where} is not a tokenizer"):
            return cls(backend)

    @property
    def vocab_size(self) -> int:
        return self.backend.get_vocab_size()

    def encode(self, text: str, *, add_special: bool = True) -> list[int]:
        with self._errors([text]):
            found = self.backend.encode(text, add_special_tokens=add_special).ids
        return check_known(found, self.n_known)

    def encode_many(self, texts: Sequence[str], *, add_special: bool = True) -> list[list[int]]:
        with self._errors(texts):
            found = self.backend.encode_batch_fast(list(texts), add_special_tokens=add_special)
        return [check_known(encoding.ids, self.n_known) for encoding in found]

    @contextmanager
    def _errors(self, texts: Sequence[str]) -> Iterator[None]:
        try:
            with library_errors("The tokenizer fails", DataError):
                yield
        except DataError as error:
            missing = next((c for text in texts for c in text if not self._has(c)), None)
            if missing is None:
                raise
            raise DataError(
                f"A text must be of what the vocabulary has; {missing!r} is not in it ({error}) "
                "Leave it out, or learn a tokenizer with it."
            ) from None

    def _has(self, character: str) -> bool:
        return not "\ud800" <= character <= "\udfff" and self.id_of(character) is not None

    def decode(self, tokens: Sequence[int]) -> str:
        with library_errors("The tokenizer fails", DataError):
            return self.backend.decode(list(tokens), skip_special_tokens=True)

    def piece(self, token: int) -> str:
        found = self.backend.id_to_token(token)
        return f"<{token}>" if found is None else found

    def bytes_of(self, token: int) -> bytes | None:
        piece = self.backend.id_to_token(token)
        if piece is None or token in self._added:
            return None
        if self._is_byte_level:
            known = _bytes_by_character()
            return bytes(map(known.__getitem__, piece)) if known.keys() >= set(piece) else None
        if found := _BYTE.fullmatch(piece):
            return bytes([int(found[1], 16)])
        return piece.replace("▁", " ").encode() if "▁" in piece else None

    @cached_property
    def _added(self) -> frozenset[int]:
        return frozenset(self.backend.get_added_tokens_decoder())

    @property
    def languages(self) -> tuple[str, ...]:
        pieces = (self.piece(token) for token in sorted(self._added))
        return tuple(found[1] for piece in pieces if (found := _LANGUAGE.fullmatch(piece)))

    @cached_property
    def _is_byte_level(self) -> bool:
        return type(self.backend.decoder).__name__ == "ByteLevel"

    def id_of(self, piece: str) -> int | None:
        return self.backend.token_to_id(piece)

    def files(self) -> dict[str, bytes]:
        plain = json.loads(self.backend.to_str())
        return {"tokenizer.json": json.dumps(plain, ensure_ascii=False).encode()}


_LANGUAGE = re.compile(r"<([a-z]{2})>")
_BYTE = re.compile(r"<0x([0-9A-F]{2})>")


@cache
def _bytes_by_character() -> dict[str, int]:
    """The characters by which byte-level vocabularies write bytes (Radford et al. 2019).

    Printable bytes stand for themselves; the others are counted up from 256.
    """
    printable = [*range(33, 127), *range(161, 173), *range(174, 256)]
    others = [byte for byte in range(256) if byte not in printable]
    written = {chr(byte): byte for byte in printable}
    return written | {chr(256 + i): byte for i, byte in enumerate(others)}
