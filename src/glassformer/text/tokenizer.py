"""From text to token ids and back."""

import json
import re
from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import cache, cached_property
from typing import Any

from glassformer.errors import DataError
from glassformer.text.coverage import FILE as COVERAGE
from glassformer.text.coverage import Coverage
from glassformer.text.shortlist import FILE as SHORTLIST
from glassformer.text.shortlist import Shortlist
from glassformer.text.tokenizer_file import check_known, library_errors, read_backend


class Tokenizer(ABC):
    """The interface of all tokenizers."""

    kind: str
    chat_template: str | None
    n_known: int | None = None  # ids that the model has embeddings for
    coverage: Coverage | None = None  # what a translator was trained to read and write
    shortlist: Shortlist | None = None  # which tokens its translations may need

    @property
    @abstractmethod
    def vocab_size(self) -> int:
        """The number of ids."""

    @abstractmethod
    def encode(self, text: str, *, add_special: bool = True) -> list[int]:
        """The ids of a text, with the special tokens that the model expects around it."""

    def encode_many(self, texts: Sequence[str], *, add_special: bool = True) -> list[list[int]]:
        """The ids of many texts; the same as one by one, but possibly faster."""
        return [self.encode(text, add_special=add_special) for text in texts]

    @abstractmethod
    def decode(self, tokens: Sequence[int]) -> str:
        """The text of ids, without special tokens."""

    @abstractmethod
    def piece(self, token: int) -> str:
        """A token as written in the vocabulary."""

    @abstractmethod
    def bytes_of(self, token: int) -> bytes | None:
        """The bytes of a token; None if it is shown as its piece, like special tokens."""

    @property
    def languages(self) -> tuple[str, ...]:
        """The target languages of a translator that has a tag for each, such as <zh>."""
        return ()

    @abstractmethod
    def id_of(self, piece: str) -> int | None:
        """The id of a piece; None if it is not in the vocabulary."""

    @abstractmethod
    def files(self) -> dict[str, bytes]:
        """The files to save, by name."""


class JsonTokenizer(Tokenizer):
    """A tokenizer of the `tokenizers` library, in one `tokenizer.json`.

    >>> from tokenizers import Tokenizer, models, pre_tokenizers
    >>> words = Tokenizer(models.WordLevel({"the": 0, "cat": 1, "?": 2}, unk_token="?"))
    >>> words.pre_tokenizer = pre_tokenizers.Whitespace()
    >>> JsonTokenizer(words).encode("the cat sat")
    [0, 1, 2]
    """

    kind = "json"

    def __init__(self, backend: Any, *, chat_template: str | None = None) -> None:
        self.backend = backend
        self.backend.no_padding()  # a file may ask for padding; batches are padded elsewhere
        self.backend.no_truncation()
        self.chat_template = chat_template

    @classmethod
    def from_json(cls, text: str, where: str) -> "JsonTokenizer":
        """Build the tokenizer that a `tokenizer.json` describes."""
        backend = read_backend(text, where)
        with library_errors(f"{where} is not a tokenizer"):
            return cls(backend)

    @property
    def vocab_size(self) -> int:
        return self.backend.get_vocab_size()

    def encode(self, text: str, *, add_special: bool = True) -> list[int]:
        with self._convert_errors([text]):
            found = self.backend.encode(text, add_special_tokens=add_special).ids
        return check_known(found, self.n_known)

    def encode_many(self, texts: Sequence[str], *, add_special: bool = True) -> list[list[int]]:
        if len(texts) == 1:  # threads take longer than one text
            return [self.encode(texts[0], add_special=add_special)]
        with self._convert_errors(texts):
            found = self.backend.encode_batch_fast(list(texts), add_special_tokens=add_special)
        return [check_known(encoding.ids, self.n_known) for encoding in found]

    @contextmanager
    def _convert_errors(self, texts: Sequence[str]) -> Iterator[None]:
        try:
            with library_errors("The tokenizer fails", DataError):
                yield
        except DataError as error:
            missing = next((c for text in texts for c in text if not self._has(c)), None)
            if missing is None:
                raise
            raise DataError(
                f"All characters of a text must be known; {missing!r} is not in the vocabulary "
                f"({error}) Remove it, or train a tokenizer that has it."
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
        found = {"tokenizer.json": json.dumps(plain, ensure_ascii=False).encode()}
        if self.coverage is not None:
            found[COVERAGE] = self.coverage.as_bytes()
        if self.shortlist is not None:
            found[SHORTLIST] = self.shortlist.as_bytes()
        return found


_LANGUAGE = re.compile(r"<([a-z]{2})>")
_BYTE = re.compile(r"<0x([0-9A-F]{2})>")


@cache
def _bytes_by_character() -> dict[str, int]:
    """The characters that represent bytes in byte-level vocabularies (Radford et al. 2019).

    Printable bytes represent themselves; the others are numbered from 256.
    """
    printable = [*range(33, 127), *range(161, 173), *range(174, 256)]
    others = [byte for byte in range(256) if byte not in printable]
    written = {chr(byte): byte for byte in printable}
    return written | {chr(256 + i): byte for i, byte in enumerate(others)}
