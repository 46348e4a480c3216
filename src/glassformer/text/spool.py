"""Token ids buffered on disk before they are written to a store, so that any number fits."""

import os
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import IO

import numpy as np

from glassformer.errors import DataError

_HELD = 1 << 18  # ids in memory before a flush


class Spool:
    """One column: the ids and lengths of its sequences, checked against the vocabulary size."""

    def __init__(self, name: str, vocab_size: int, folder: Path) -> None:
        self.name, self.vocab_size = name, vocab_size
        self.code = "U16" if vocab_size <= 1 << 16 else "U32"
        self.dtype = np.dtype("<u2") if self.code == "U16" else np.dtype("<u4")
        self.n = self.n_tokens = 0
        self._ids: list[int] = []
        self._lengths: list[int] = []
        self._tokens_file = tempfile.TemporaryFile(dir=folder)  # noqa: SIM115 (see close)
        self._lengths_file = tempfile.TemporaryFile(dir=folder)  # noqa: SIM115

    def add(self, sequence: Sequence[int] | np.ndarray) -> None:
        """Append a sequence."""
        self._ids.extend(sequence.tolist() if isinstance(sequence, np.ndarray) else sequence)
        self._lengths.append(len(sequence))
        self.n += 1
        self.n_tokens += len(sequence)
        if len(self._ids) >= _HELD or len(self._lengths) >= _HELD:
            self._flush()

    def tokens(self, size: int) -> Iterator[bytes]:
        """All ids, in chunks of at most `size` bytes."""
        self._flush()
        yield from _chunks(self._tokens_file, size)

    def offsets(self, size: int) -> Iterator[bytes]:
        """The start of each sequence, and the end of the last."""
        self._flush()
        total = np.zeros(1, "<i8")
        yield total.tobytes()
        for chunk in _chunks(self._lengths_file, size):
            ends = total + np.cumsum(np.frombuffer(chunk, "<i8"))
            total = ends[-1:]
            yield ends.astype("<i8").tobytes()

    def close(self) -> None:
        self._tokens_file.close()
        self._lengths_file.close()

    def _flush(self) -> None:
        ids = np.array(self._ids, dtype=np.int64)
        if len(ids) and not 0 <= ids.min() <= ids.max() < self.vocab_size:
            wrong = ids[(ids < 0) | (ids >= self.vocab_size)][0]
            raise DataError(
                f"Token ids of {self.name!r} must be below vocab_size={self.vocab_size}; got "
                f"{wrong}. Give the vocab_size of the tokenizer that made them."
            )
        self._tokens_file.write(ids.astype(self.dtype).tobytes())
        self._lengths_file.write(np.array(self._lengths, "<i8").tobytes())
        self._ids, self._lengths = [], []


def _chunks(file: IO[bytes], size: int) -> Iterator[bytes]:
    file.seek(0)
    while chunk := file.read(size):
        yield chunk
    file.seek(0, os.SEEK_END)
