"""Rows of several texts: aligned files, tab-separated values, JSON Lines."""

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import zip_longest
from pathlib import Path
from typing import Any

from glassformer.errors import DataError
from glassformer.text.corpus_report import Kind
from glassformer.text.lines import count_lines, text_lines

Problems = tuple[tuple[Kind, Path], ...]


@dataclass(frozen=True, slots=True)
class Row:
    """The texts of a row with their files, or its problems."""

    line: int
    texts: tuple[str, ...]
    files: tuple[Path, ...]
    problems: Problems = ()


def aligned_rows(paths: Sequence[Path], max_chars: int) -> Iterator[Row]:
    """Line i of every file; files of different lengths are an error."""
    files = tuple(paths)
    readers = [text_lines(path, max_chars=max_chars) for path in files]
    for number, lines in enumerate(zip_longest(*readers), 1):
        if None in lines:
            counts = ", ".join(f"{path} has {count_lines(path)}" for path in files)
            raise DataError(
                f"Aligned files must have the same number of lines; {counts}, so they diverge at "
                f"line {number} or before. Create them again from one source."
            )
        problems: Problems = tuple(
            (x.problem, p) for x, p in zip(lines, files, strict=True) if x.problem
        )
        yield Row(number, tuple(x.text or "" for x in lines), files, problems)


def tab_rows(
    path: Path, columns: Sequence[int | str], header: bool, max_chars: int
) -> Iterator[Row]:
    """The selected fields of each line; columns are numbers from 1, or names in the header."""
    files = (path,) * len(columns)
    places = [c - 1 for c in columns if isinstance(c, int)]
    for line in text_lines(path, max_chars=max_chars):
        if header and line.number == 1:
            places = _places(path, columns, (line.text or "").split("\t"))
            continue
        if line.problem:
            yield Row(line.number, (), (), ((line.problem, path),))
            continue
        fields = (line.text or "").split("\t")
        if fields == [""]:
            yield Row(line.number, (), (), (("empty", path),))
        elif len(fields) <= max(places):
            yield Row(line.number, (), (), (("missing column", path),))
        else:
            yield Row(line.number, tuple(fields[place] for place in places), files)


def json_rows(path: Path, keys: Sequence[str], max_chars: int) -> Iterator[Row]:
    """The selected values of each line's object; numbers and booleans as written."""
    files = (path,) * len(keys)
    for line in text_lines(path, max_chars=max_chars):
        problem: Kind | None = line.problem
        texts: tuple[str, ...] = ()
        if problem is None and not (line.text or "").strip():
            problem = "empty"
        elif problem is None:
            texts, problem = _values(line.text or "", keys)
        if problem is None:
            yield Row(line.number, texts, files)
        else:
            yield Row(line.number, (), (), ((problem, path),))


def _values(text: str, keys: Sequence[str]) -> tuple[tuple[str, ...], Kind | None]:
    try:
        loaded = json.loads(text)
    except (ValueError, RecursionError):
        return (), "invalid JSON"
    found = [_value(loaded, key) for key in keys]
    if any(value is None or isinstance(value, dict | list) for value in found):
        return (), "missing field"
    texts = tuple(v if isinstance(v, str) else json.dumps(v) for v in found)
    try:  # "\ud800" is valid JSON, but a lone surrogate is not text
        "".join(texts).encode()
    except UnicodeEncodeError:
        return (), "bad UTF-8"
    return texts, None


def _value(loaded: Any, key: str) -> Any:
    if isinstance(loaded, dict) and key in loaded:
        return loaded[key]
    for part in key.split("."):
        if not isinstance(loaded, dict) or part not in loaded:
            return None
        loaded = loaded[part]
    return loaded


def _places(path: Path, columns: Sequence[int | str], names: list[str]) -> list[int]:
    for column in columns:
        if isinstance(column, str) and column not in names:
            raise DataError(
                f"{path} must have the column {column!r} in line 1; it has {', '.join(names)}."
            )
    return [c - 1 if isinstance(c, int) else names.index(c) for c in columns]
