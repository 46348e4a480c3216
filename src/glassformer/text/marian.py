"""Marian's tokenizer: a SentencePiece model to read with, one to write with, one vocabulary."""

import json
import re
from collections.abc import Sequence
from functools import cached_property
from typing import Any

from glassformer.errors import CheckpointError
from glassformer.text.tokenizer import Tokenizer

FILES = ("source.spm", "target.spm", "vocab.json")
_TARGET = re.compile(r"^>>.+?<<")  # names the language to write, in models with several


class MarianTokenizer(Tokenizer):
    """Pieces by SentencePiece, ids by vocab.json; the end of a text is marked."""

    kind = "marian"

    def __init__(self, files: dict[str, bytes]) -> None:
        self._files = {name: files[name] for name in FILES}
        self.chat_template = None
        try:
            self._ids: dict[str, int] = json.loads(files["vocab.json"])
            self._end, self._unknown = self._ids["</s>"], self._ids["<unk>"]
        except (ValueError, KeyError) as error:
            raise CheckpointError(
                f"vocab.json must give ids to the pieces of a Marian tokenizer: {error}."
            ) from None
        self._pieces = {i: piece for piece, i in self._ids.items()}

    @cached_property
    def _source(self) -> Any:
        return _loaded(self._files["source.spm"])

    @cached_property
    def _target(self) -> Any:
        return _loaded(self._files["target.spm"])

    @property
    def vocab_size(self) -> int:
        return len(self._ids)

    def encode(self, text: str, *, add_special: bool = True) -> list[int]:
        target = _TARGET.match(text)
        pieces = [target[0]] if target else []
        pieces += self._source.encode(text[target.end() :] if target else text, out_type=str)
        ids = [self._ids.get(piece, self._unknown) for piece in pieces]
        return [*ids, self._end] if add_special else ids

    def decode(self, tokens: Sequence[int]) -> str:
        hidden = {self._end, self._ids.get("<pad>")}
        return self._target.decode_pieces([self.piece(t) for t in tokens if t not in hidden])

    def piece(self, token: int) -> str:
        return self._pieces.get(token, f"<{token}>")

    def bytes_of(self, token: int) -> bytes | None:
        piece = self.piece(token)
        return piece.replace("▁", " ").encode() if "▁" in piece else None

    def id_of(self, piece: str) -> int | None:
        return self._ids.get(piece)

    def files(self) -> dict[str, bytes]:
        return dict(self._files)


def _loaded(model: bytes) -> Any:
    try:
        import sentencepiece
    except ImportError:
        raise CheckpointError(
            "Marian's tokenizer needs the package sentencepiece; it is not installed. "
            "Run: pip install 'glassformer[sentencepiece]'"
        ) from None
    try:
        return sentencepiece.SentencePieceProcessor(model_proto=model)
    except RuntimeError as error:
        raise CheckpointError(f"source.spm or target.spm is damaged: {error}.") from None
