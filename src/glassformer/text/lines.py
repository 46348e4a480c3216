"""The lines of a file with their numbers, and what is wrong with the bad ones."""

from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from glassformer.errors import DataError
from glassformer.text.compression import COMPRESSED, READING_ERRORS, damage_error, open_decompressed
from glassformer.text.corpus_report import Kind

_MARK = b"\xef\xbb\xbf"  # the byte order mark that some editors write
_CHUNK = 1 << 16
# UTF-32 first: its little-endian mark starts with that of UTF-16.
_OTHER_MARKS = {
    b"\xff\xfe\0\0": "UTF-32",
    b"\0\0\xfe\xff": "UTF-32",
    b"\xff\xfe": "UTF-16",
    b"\xfe\xff": "UTF-16",
}


def check_text(start: bytes, where: str) -> None:
    """Reject data that starts like UTF-16, UTF-32 or a binary file.

    >>> check_text("a word".encode("utf-16"), "book.txt")
    Traceback (most recent call last):
    glassformer.errors.DataError: book.txt must be UTF-8 text; it is UTF-16. Convert it first, \
with: iconv -f UTF-16 -t UTF-8
    """
    found = next((name for mark, name in _OTHER_MARKS.items() if start.startswith(mark)), None)
    if found is None and b"\0" in start:
        even, odd = start[0::2].count(0), start[1::2].count(0)
        is_wide = max(even, odd) * 8 > len(start) > 8 * min(even, odd)
        found = ("UTF-16LE" if odd > even else "UTF-16BE") if is_wide else ""
        if not is_wide and 100 * (even + odd) < len(start):
            return  # a few: their lines are skipped and counted
    if found is None:
        return
    if not found:
        raise DataError(
            f"{where} must be UTF-8 text; it contains null characters, as binary files do. "
            "Give a text file."
        )
    raise DataError(
        f"{where} must be UTF-8 text; it is {found}. Convert it first, with: "
        f"iconv -f {found} -t UTF-8"
    )


def raw_lines(path: Path, most: int) -> Iterator[tuple[int, bytes | None, bool]]:
    """Yield line number, bytes (None if more than `most`), and whether a line feed ends the line.

    Only \\n ends a line, and a \\r before it is dropped. U+2028 and similar characters do not:
    aligned files must have the same line numbers.
    """
    number = 0
    with open_decompressed(path) as file:
        try:
            # A damaged archive is only detected at its end; its first bytes say little.
            start = file.peek(_CHUNK)[: 4 if path.suffix in COMPRESSED else _CHUNK]
            check_text(start, str(path))
            while line := file.readline(most + 2):
                number += 1
                if len(line) > most and not line.endswith(b"\n"):
                    while line and not line.endswith(b"\n"):  # never all of it in memory
                        line = file.readline(_CHUNK)
                    yield number, None, bool(line)
                    continue
                line = line.removeprefix(_MARK) if number == 1 else line
                text, fed = line.removesuffix(b"\n"), line.endswith(b"\n")
                yield number, text.removesuffix(b"\r") if fed else text, fed
        except READING_ERRORS as error:
            raise damage_error(path, error, behind=number) from None


class Line(NamedTuple):
    """A line of text, or what is wrong with it."""

    number: int
    text: str | None
    problem: Kind | None = None
    fed: bool = True  # whether a line feed ends it; the last line may have none


def text_lines(path: Path, *, max_chars: int) -> Iterator[Line]:
    """Every line of a file, good or bad."""
    for number, raw, fed in raw_lines(
        path, most=4 * max_chars
    ):  # UTF-8: at most four bytes per character
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
        elif "\0" in text:
            yield Line(number, None, "null character", fed)
        else:
            yield Line(number, text, None, fed)


def count_lines(path: Path) -> int:
    """The number of lines of a file, with or without a final line feed."""
    return sum(1 for _ in raw_lines(path, most=_CHUNK))
