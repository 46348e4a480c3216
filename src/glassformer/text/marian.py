"""Marian's tokenizer: SentencePiece models for source and target, with one vocabulary."""

import contextlib
import re
from collections.abc import Iterator, Sequence
from functools import cached_property
from typing import Any

from glassformer.errors import CheckpointError, GlassformerError
from glassformer.installation import install_command
from glassformer.parsing import parse_json
from glassformer.settings import summarize_error
from glassformer.text.tokenizer import Tokenizer
from glassformer.text.tokenizer_file import check_known, check_vocabulary

FILES = ("source.spm", "target.spm", "vocab.json")
_TARGET = re.compile(r"^>>.+?<<")  # the target language, in multilingual models


class MarianTokenizer(Tokenizer):
    """Pieces from SentencePiece, ids from vocab.json; </s> ends every text."""

    kind = "marian"

    def __init__(self, files: dict[str, bytes], where: str = "the folder") -> None:
        self._files = {name: files[name] for name in FILES}
        self._where = where
        self.chat_template = None
        path = f"vocab.json of {where}"
        try:
            ids = parse_json(files["vocab.json"].decode(), path)
        except UnicodeDecodeError:
            raise CheckpointError(f"{path} must be UTF-8 text.") from None
        if not isinstance(ids, dict) or not {"</s>", "<unk>"} <= ids.keys():
            raise CheckpointError(
                f"{path} must give ids to the pieces of a Marian tokenizer, </s> and <unk> among "
                "them."
            )
        check_vocabulary(ids, path)
        self._ids: dict[str, int] = ids
        self._end: int = ids["</s>"]
        self._unknown: int = ids["<unk>"]
        self._pieces = {i: piece for piece, i in self._ids.items()}

    @cached_property
    def _source(self) -> Any:
        return _load_model(self._files["source.spm"], f"source.spm of {self._where}")

    @cached_property
    def _target(self) -> Any:
        return _load_model(self._files["target.spm"], f"target.spm of {self._where}")

    @property
    def vocab_size(self) -> int:
        return len(self._ids)

    def encode(self, text: str, *, add_special: bool = True) -> list[int]:
        target = _TARGET.match(text)
        pieces = [target[0]] if target else []
        with _convert_errors(f"source.spm of {self._where}"):
            pieces += self._source.encode(text[target.end() :] if target else text, out_type=str)
        ids: list[int] = [self._ids.get(piece, self._unknown) for piece in pieces]
        return check_known([*ids, self._end] if add_special else ids, self.n_known)

    def decode(self, tokens: Sequence[int]) -> str:
        hidden = {self._end, self._ids.get("<pad>")}
        with _convert_errors(f"target.spm of {self._where}"):
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


def _load_model(model: bytes, where: str) -> Any:
    try:
        import sentencepiece
    except ImportError:
        raise CheckpointError(
            "Marian's tokenizer needs the package sentencepiece, which is not installed. "
            f"Run: {install_command('sentencepiece')}"
        ) from None
    with _convert_errors(where):
        if not model:
            raise RuntimeError("it is empty")
        return sentencepiece.SentencePieceProcessor(model_proto=model)


@contextlib.contextmanager
def _convert_errors(where: str) -> Iterator[None]:
    """Convert the library's errors for a damaged model into one sentence."""
    try:
        yield
    except (RuntimeError, ValueError, OSError) as error:
        if isinstance(error, GlassformerError):
            raise
        raise CheckpointError(f"{where} is damaged: {summarize_error(error)}.") from None
