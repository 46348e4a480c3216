"""Token ids on disk, memory-mapped: as fast as an array, and only the pages in use take memory.

One safetensors file; each column has the concatenated ids of its sequences, and their offsets:

    source.tokens   U16 | U32   5 8 2 │ 9 2 │ 7 7 4 2
    source.offsets  I64         0       3     5         9
"""

import hashlib
import json
import struct
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from jaxtyping import Int, UInt

from glassformer.errors import DataError
from glassformer.parsing import parse_json
from glassformer.settings import quote
from glassformer.storage import atomic_file, open_regular
from glassformer.text.spool import Spool

VERSION = "1"
_DTYPES = {"U16": np.dtype("<u2"), "U32": np.dtype("<u4"), "I64": np.dtype("<i8")}
_MOST_HEADER = 100 << 20  # safetensors' own limit
_CHUNK = 1 << 20


@dataclass(frozen=True, slots=True, eq=False)
class TokenStore:
    """Sequences of token ids: `store[i]` is a view of the i-th, `store.tokens` all of them."""

    tokens: UInt[np.ndarray, "M"]
    offsets: Int[np.ndarray, "N"]  # one more than the number of sequences

    @classmethod
    def open(cls, path: Path | str, *, verify: bool = True) -> "TokenStore":
        """Open a file with a single column."""
        table = TokenTable.open(path, verify=verify)
        if len(table.columns) != 1:
            raise DataError(
                f"A token store has one column; {path} has {', '.join(table.columns)}. "
                "Open it with TokenTable.open."
            )
        return next(iter(table.columns.values()))

    def __len__(self) -> int:
        return len(self.offsets) - 1

    def __getitem__(self, i: int) -> UInt[np.ndarray, "L"]:
        if not -len(self) <= i < len(self):
            raise IndexError(f"A store of {len(self)} sequences has no number {i}.")
        i %= len(self)
        return self.tokens[self.offsets[i] : self.offsets[i + 1]]

    def __iter__(self) -> Iterator[np.ndarray]:
        return (self[i] for i in range(len(self)))

    @property
    def lengths(self) -> Int[np.ndarray, "N"]:
        """The number of tokens of each sequence."""
        return np.diff(self.offsets)


@dataclass(frozen=True, slots=True, eq=False)
class TokenTable:
    """Columns with the same number of sequences; a row may be a source and its target."""

    columns: dict[str, TokenStore]
    notes: dict[str, Any]  # stored along with the tokens

    @classmethod
    def open(cls, path: Path | str, *, verify: bool = True) -> "TokenTable":
        """Open a file; `verify` reads all of it once and compares its hash."""
        path = Path(path)
        header, start = read_header(path)
        meta, names, notes, spans = _check_header(header, path)
        expected = start + max(span["data_offsets"][1] for span in spans.values())
        size = path.stat().st_size
        if size != expected:
            raise DataError(
                f"{path} must have {expected} bytes; it has {size}: it was truncated or "
                "overwritten. Build it again."
            )
        mapped = np.asarray(np.memmap(path, np.uint8, mode="r"))[start:]
        arrays = {name: _array(mapped, span) for name, span in spans.items()}
        columns = {n: TokenStore(arrays[f"{n}.tokens"], arrays[f"{n}.offsets"]) for n in names}
        if verify and _hash(mapped, spans, meta) != meta.get("sha256"):
            raise DataError(
                f"{path} is damaged: its content does not match its hash. Build it again."
            )
        table = cls(columns, notes)
        table._check(path)
        return table

    def __len__(self) -> int:
        return len(next(iter(self.columns.values())))

    def __getitem__(self, i: int) -> tuple[np.ndarray, ...]:
        return tuple(column[i] for column in self.columns.values())

    @property
    def lengths(self) -> Int[np.ndarray, "N M"]:
        """(rows, columns): the number of tokens of each sequence."""
        return np.stack([column.lengths for column in self.columns.values()], axis=1)

    def check_tokens(self, vocab_size: int, path: Path | str) -> None:
        """Reject a table with tokens outside a vocabulary of this size."""
        for name, column in self.columns.items():
            most = int(column.tokens.max(initial=0))
            if most >= vocab_size:
                raise DataError(
                    f"{path} must hold tokens below {vocab_size}, the size of the vocabulary; "
                    f"{name} has {most}. Build it again."
                )

    def _check(self, path: Path) -> None:
        for name, column in self.columns.items():
            offsets = column.offsets
            fits = len(offsets) and offsets[0] == 0 and offsets[-1] == len(column.tokens)
            if not fits or len(column) != len(self) or (np.diff(offsets) < 0).any():
                raise DataError(
                    f"{path} is damaged: the offsets of {name!r} are inconsistent. Build it again."
                )


def write_store(
    path: Path | str,
    sequences: Iterable[Sequence[int] | np.ndarray],
    vocab_size: int,
    *,
    progress: Callable[[int], None] | None = None,
) -> TokenStore:
    """Write sequences to a file atomically, and open it.

    `progress` is called now and then with the number of sequences so far.
    """
    rows = ((sequence,) for sequence in sequences)
    table = write_table(path, rows, {"tokens": vocab_size}, progress=progress)
    return table.columns["tokens"]


def write_table(
    path: Path | str,
    rows: Iterable[Sequence[Sequence[int] | np.ndarray]],
    vocab_sizes: Mapping[str, int],
    *,
    notes: Callable[[], Mapping[str, Any]] = dict,
    progress: Callable[[int], None] | None = None,
) -> TokenTable:
    """Write rows of one sequence per column; `notes` is called after the last row."""
    path = Path(path)
    if not vocab_sizes:
        raise DataError("A table must have at least one column; got none.")
    with (
        atomic_file(path, DataError, mark=b'"glassformer tokens"') as unfinished,
        ExitStack() as stack,
    ):
        file = stack.enter_context(unfinished.open("wb"))
        spools = [
            stack.enter_context(closing(Spool(name, size, path.absolute().parent)))
            for name, size in vocab_sizes.items()
        ]
        n = 0
        for n, row in enumerate(rows, 1):
            for spool, sequence in zip(spools, row, strict=True):
                spool.add(sequence)
            if progress is not None and n % 1000 == 0:
                progress(n)
        if progress is not None:
            progress(n)
        _write(file, spools, notes())
    return TokenTable.open(path, verify=False)


def read_header(path: Path) -> tuple[dict[str, Any], int]:
    """The JSON header of a safetensors file, and where its data starts."""
    try:
        with open_regular(path) as file:
            (size,) = struct.unpack("<Q", file.read(8))
            if size > min(_MOST_HEADER, path.stat().st_size - 8):
                raise _store_error(path, f"it announces a header of {size} bytes")
            text = file.read(size).decode()
    except OSError as error:
        raise DataError(f"{path} cannot be read: {error.strerror}.") from None
    except (struct.error, UnicodeDecodeError) as error:
        raise _store_error(path, error) from None
    header = parse_json(text, f"{path} is not a token store: its header", DataError)
    if not isinstance(header, dict):
        raise _store_error(path, "it has no header")
    return header, 8 + size


def _write(file: Any, spools: list[Spool], notes: Mapping[str, Any]) -> None:
    spans: dict[str, Any] = {}
    at, hashed = 0, hashlib.sha256()
    # Offsets first: they are eight bytes wide, which keeps what follows aligned.
    parts = [(f"{s.name}.offsets", "I64", s.n + 1, s.offsets) for s in spools]
    wide_first = sorted(spools, key=lambda s: -s.dtype.itemsize)
    parts += [(f"{s.name}.tokens", s.code, s.n_tokens, s.tokens) for s in wide_first]
    for name, code, count, chunks in parts:
        spans[name] = _describe_span(code, at, [count])
        at = spans[name]["data_offsets"][1]
        for chunk in chunks(_CHUNK):
            hashed.update(chunk)
    meta = {
        "format": "glassformer tokens",
        "version": VERSION,
        "columns": json.dumps([spool.name for spool in spools]),
        "notes": json.dumps(dict(notes), ensure_ascii=False),
    }
    hashed.update(_describe_content(spans, meta))
    meta["sha256"] = hashed.hexdigest()
    header = json.dumps({"__metadata__": meta, **spans}, ensure_ascii=False).encode()
    header += b" " * (-len(header) % 8)
    file.write(struct.pack("<Q", len(header)) + header)
    for _, _, _, chunks in parts:
        for chunk in chunks(_CHUNK):
            file.write(chunk)


def _check_header(
    header: dict[str, Any], path: Path
) -> tuple[dict[str, str], list[str], dict[str, Any], dict[str, Any]]:
    """The parts of a header, after checking their types and bounds."""
    meta = header.pop("__metadata__", None)
    if not isinstance(meta, dict) or not all(isinstance(v, str) for v in meta.values()):
        raise _store_error(path, "its header has no metadata")
    if meta.get("version") != VERSION:
        raise _store_error(path, f"it is of version {quote(meta.get('version'))}")
    inside = f"{path} is not a token store: its header"
    names = parse_json(meta.get("columns", ""), inside, DataError)
    notes = parse_json(meta.get("notes", ""), inside, DataError)
    if not isinstance(names, list) or not all(isinstance(name, str) for name in names):
        raise _store_error(path, f"its columns are {quote(names)}")
    parts = [f"{name}.{part}" for name in names for part in ("tokens", "offsets")]
    if not names or not isinstance(notes, dict) or sorted(parts) != sorted(header):
        raise _store_error(path, f"it has columns {quote(names)} and parts {quote(sorted(header))}")
    at = 0
    for name, span in sorted(header.items(), key=lambda item: _read_span(item[1])):
        code = span.get("dtype") if isinstance(span, dict) else None
        code = code if isinstance(code, str) and code in _DTYPES else ""
        fits = code and (code == "I64") == name.endswith(".offsets")
        if not fits or span != _describe_span(code, at, span.get("shape")):
            raise _store_error(path, f"{name} is {quote(span)}, and must begin at byte {at}")
        at = span["data_offsets"][1]
    return meta, names, notes, header


def _read_span(span: Any) -> tuple[int, int]:
    """Start and end of a part, as the header gives them; (−1, −1) if malformed."""
    offsets = span.get("data_offsets") if isinstance(span, dict) else None
    fits = isinstance(offsets, list) and len(offsets) == 2 and all(type(n) is int for n in offsets)
    return (offsets[0], offsets[1]) if fits and offsets else (-1, -1)


def _describe_span(code: str, start: int, shape: Any) -> dict[str, Any]:
    """The header entry of a part with this shape and start."""
    count = shape[0] if isinstance(shape, list) and shape and type(shape[0]) is int else -1
    end = start + max(0, count) * _DTYPES[code].itemsize
    return {"dtype": code, "shape": [count], "data_offsets": [start, end]}


def _array(mapped: np.ndarray, span: dict[str, Any]) -> np.ndarray:
    start, end = span["data_offsets"]
    return mapped[start:end].view(_DTYPES[span["dtype"]])


def _describe_content(spans: dict[str, Any], meta: dict[str, str]) -> bytes:
    return json.dumps([spans, {k: v for k, v in meta.items() if k != "sha256"}]).encode()


def _hash(mapped: np.ndarray, spans: dict[str, Any], meta: dict[str, str]) -> str:
    hashed = hashlib.sha256()
    for start in range(0, len(mapped), _CHUNK):
        hashed.update(mapped[start : start + _CHUNK].tobytes())
    hashed.update(_describe_content(spans, meta))
    return hashed.hexdigest()


def _store_error(path: Path, error: Exception | str) -> DataError:
    return DataError(f"{path} is not a token store: {error}. Build it again.")
