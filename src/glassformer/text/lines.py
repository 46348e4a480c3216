"""Lines of a file with their numbers, and the words for what is wrong with them."""

from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from glassformer.text.compressed import READING_ERRORS, damage, opened
from glassformer.text.report import Kind

_MARK = b"\xef\xbb\xbf"  # the byte order mark that some editors put first
_CHUNK = 1 << 16


def raw_lines(path: Path, most: int) -> Iterator[tuple[int, bytes | None, bool]]:
    """Numbers from 1; the bytes up to the line feed, None where more than `most`; whether one came.

    Only \\n ends a line: U+2028 and its like may stand within one, and files that belong
    together must keep step. A \\r before it belongs to the ending.
    """
    number = 0
    with opened(path) as file:
        try:
            while line := file.readline(most + 2):
                number += 1
                if len(line) > most and not line.endswith(b"\n"):
                    while line and not line.endswith(b"\n"):  # never the whole of it in memory
                        line = file.readline(_CHUNK)
                    yield number, None, bool(line)
                    continue
                line = line.removeprefix(_MARK) if number == 1 else line
                text, fed = line.removesuffix(b"\n"), line.endswith(b"\n")
                yield number, text.removesuffix(b"\r") if fed else text, fed
        except READING_ERRORS as error:
            raise damage(path, error, behind=number) from None


class Line(NamedTuple):
    """A line of text, or what is wrong with it."""

    number: int
    text: str | None
    problem: Kind | None = None
    fed: bool = True  # whether a line feed ends it: the last line may have none


def text_lines(path: Path, *, max_chars: int) -> Iterator[Line]:
    """Every line of a file, good or bad."""
    for number, raw, fed in raw_lines(path, most=4 * max_chars):  # UTF-8: at most four bytes each
        if raw is None:
            yield Line(number, None, "too long", fed)
            continue
        try:
            text = raw.decode()
        except UnicodeDecodeError:
            yield Line(number, None, "bad UTF-8", fed)
            continue
        if len(text) > max_chars:
            yield Line(number, None, "too long", fed)
        else:
            yield Line(number, text, None, fed)


def n_lines(path: Path) -> int:
    """How many lines a file has, the last one with or without its line feed."""
    return sum(1 for _ in raw_lines(path, most=_CHUNK))
