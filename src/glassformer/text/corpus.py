"""Examples from files: plain text, aligned files, tables, JSON Lines.

format       an example is                                             columns are
lines        a line
documents    a block of lines between blank lines
file         a file
stream       a line with its line feed; joined, they are the text
aligned      line i of every file                                      the files, from 1
tsv          a line of fields separated by tabs                         numbers from 1, or names
jsonl        a line that is a JSON object                              keys; "a.b" is b within a

Bad lines are skipped, counted and reported with their line numbers. A corpus with too many of them,
or with aligned files of different lengths, is rejected.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, get_args

from glassformer.errors import ConfigError
from glassformer.text.corpus_report import CorpusReport
from glassformer.text.lines import Line, text_lines
from glassformer.text.rows import Problems, Row, aligned_rows, json_rows, tab_rows

Format = Literal["lines", "documents", "file", "stream", "aligned", "tsv", "jsonl"]
PLAIN = ("lines", "documents", "file", "stream")


@dataclass(frozen=True, slots=True)
class Example:
    """One text, or several that belong together, with their origin and an optional class."""

    texts: tuple[str, ...]
    label: str | None
    line: int  # its first line, from 1
    file: Path


@dataclass(frozen=True, kw_only=True, slots=True)
class Corpus:
    """Files, and how they are divided into examples.

    >>> pairs = Corpus(files=("train.en", "train.de"), format="aligned")
    >>> table = Corpus(files=("reviews.tsv.gz",), format="tsv", columns=(2,), label=1)
    """

    files: Sequence[Path | str] | Path | str
    format: Format = "lines"
    columns: Sequence[int | str] = ()  # the texts; default for aligned files: all
    label: int | str | None = None  # the column of the class
    header: bool = False  # whether the first line of a table names its columns
    max_chars: int = 1 << 24  # longer lines and documents are skipped
    most_bad: float = 0.05  # the largest tolerated share of bad lines

    def __post_init__(self) -> None:
        object.__setattr__(self, "files", self.paths)
        object.__setattr__(self, "columns", tuple(self.columns) or self._every_column())
        self._check()

    @property
    def paths(self) -> tuple[Path, ...]:
        """The files, as a tuple even if only one was given."""
        files = (self.files,) if isinstance(self.files, Path | str) else self.files
        return tuple(map(Path, files))

    @property
    def n_texts(self) -> int:
        """The number of texts per example."""
        return 1 if self.format in PLAIN else len(self.columns)

    def examples(self, report: CorpusReport) -> Iterator[Example]:
        """Yield the examples; raises at the end if too many lines were bad."""
        for example in self._plain(report) if self.format in PLAIN else self._table(report):
            report.n_kept += 1
            yield example
        report.check(self.most_bad)

    def _table(self, report: CorpusReport) -> Iterator[Example]:
        for row in self._rows(self._wanted):
            report.n_lines += 1
            sides = zip(row.texts, row.files, strict=True)
            empty = dict.fromkeys(path for text, path in sides if not text.strip())
            problems: Problems = row.problems or tuple(("empty", path) for path in empty)
            if problems:
                report.reject(row.line, *problems)
                continue
            texts, label = row.texts, None
            if self.label is not None:
                texts, label = row.texts[:-1], row.texts[-1].strip()
            yield Example(texts, label, row.line, row.files[0])

    def _rows(self, wanted: tuple[int | str, ...]) -> Iterator[Row]:
        if self.format == "aligned":
            chosen = [self.paths[int(i) - 1] for i in wanted]
            yield from aligned_rows(chosen, self.max_chars)
            return
        for path in self.paths:
            if self.format == "tsv":
                yield from tab_rows(path, wanted, self.header, self.max_chars)
            else:
                yield from json_rows(path, [str(name) for name in wanted], self.max_chars)

    def _plain(self, report: CorpusReport) -> Iterator[Example]:
        for path in self.paths:
            lines = self._good_lines(path, report)
            if self.format == "stream":
                for line in lines:
                    text = (line.text or "") + ("\n" if line.fed else "")
                    yield Example((text,), None, line.number, path)
            elif self.format == "lines":
                for line in lines:
                    if (line.text or "").strip():
                        yield Example((line.text or "",), None, line.number, path)
                    else:
                        report.note("blank", path, line.number)
            else:
                yield from self._documents(path, lines, report)

    def _good_lines(self, path: Path, report: CorpusReport) -> Iterator[Line]:
        for line in text_lines(path, max_chars=self.max_chars):
            report.n_lines += 1
            if line.problem is None:
                yield line
            else:
                report.reject(line.number, (line.problem, path))

    def _documents(
        self, path: Path, lines: Iterable[Line], report: CorpusReport
    ) -> Iterator[Example]:
        for part in _parts(lines, self.max_chars, between_blanks=self.format == "documents"):
            if part.text is None:
                report.reject(part.number, ("too long", path))
            else:
                yield Example((part.text,), None, part.number, path)

    @property
    def _wanted(self) -> tuple[int | str, ...]:
        return (*self.columns, *(() if self.label is None else (self.label,)))

    def _every_column(self) -> tuple[int, ...]:
        if self.format != "aligned":
            return ()
        return tuple(i for i in range(1, len(self.paths) + 1) if i != self.label)

    def _check(self) -> None:
        wanted = self._wanted
        if self.format not in get_args(Format):
            raise ConfigError(
                f"format must be one of {', '.join(get_args(Format))}; got {self.format!r}."
            )
        if not self.paths:
            raise ConfigError("A corpus must have at least one file; got none.")
        if self.format in PLAIN and wanted:
            raise ConfigError(
                f"Plain text has no columns; got {wanted} for {self.format!r}. Use format='tsv' "
                "or 'jsonl'."
            )
        if self.format in ("tsv", "jsonl") and not self.columns:
            raise ConfigError(
                f"A {self.format!r} corpus needs columns; got none. Try "
                + ("columns=(1,)." if self.format == "tsv" else "columns=('text',).")
            )
        named = self.format == "jsonl" or (self.format == "tsv" and self.header)
        most = len(self.paths) if self.format == "aligned" else None
        for column in wanted:
            if isinstance(column, str) and not named:
                raise ConfigError(f"Without a header, columns are numbers from 1; got {column!r}.")
            if isinstance(column, int) and not 1 <= column <= (most or column):
                raise ConfigError(
                    f"Columns are numbered from 1{f' to {most}' if most else ''}; got {column}."
                )
        if self.max_chars < 1 or not 0 <= self.most_bad <= 1:
            raise ConfigError(
                "max_chars must be at least 1 and most_bad between 0 and 1; got "
                f"max_chars={self.max_chars}, most_bad={self.most_bad}."
            )


def read_lines(path: Path | str, *, max_chars: int = 1 << 24) -> tuple[list[str], CorpusReport]:
    """The non-blank lines of a file, and a report of the bad ones."""
    report = CorpusReport()
    corpus = Corpus(files=(path,), max_chars=max_chars)
    return [example.texts[0] for example in corpus.examples(report)], report


def read_pairs(
    source: Path | str, target: Path | str, *, max_chars: int = 1 << 24
) -> tuple[list[tuple[str, str]], CorpusReport]:
    """The pairs of lines of two aligned files, and a report of the bad ones."""
    report = CorpusReport()
    corpus = Corpus(files=(source, target), format="aligned", max_chars=max_chars)
    return [(e.texts[0], e.texts[1]) for e in corpus.examples(report)], report


def _parts(lines: Iterable[Line], max_chars: int, *, between_blanks: bool) -> Iterator[Line]:
    """Join lines into documents; those that are too long lose their text."""
    texts: list[str] = []
    first, size = 0, -1  # no line feed before the first line

    def finish_document() -> Iterator[Line]:
        if size > max_chars:
            yield Line(first, None, "too long")
        elif any(text.strip() for text in texts):
            yield Line(first, "\n".join(texts))

    for line in lines:
        text = line.text or ""
        if between_blanks and not text.strip():
            yield from finish_document()
            texts, first, size = [], 0, -1
            continue
        first, size = first or line.number, size + len(text) + 1
        if size <= max_chars:  # text that is too long is dropped
            texts.append(text)
    yield from finish_document()
