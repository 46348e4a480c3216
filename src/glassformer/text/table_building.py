"""From a corpus to a table of tokens on disk, rebuilt only if something changed."""

import hashlib
import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from glassformer.errors import ConfigError, DataError
from glassformer.text.corpus import Corpus, Example
from glassformer.text.corpus_report import CorpusReport
from glassformer.text.store import TokenTable, write_table
from glassformer.text.tokenizer import Tokenizer

_BATCH = 1000  # examples tokenized in one call
_MOST_CHARS = 1 << 19  # per call: the library needs more than 100 bytes per token


@dataclass(frozen=True, kw_only=True, slots=True)
class Encoding:
    """How a text becomes the sequence of a column."""

    tokenizer: Tokenizer
    add_special: bool = True
    before: tuple[int, ...] = ()  # such as a language tag
    after: tuple[int, ...] = ()  # such as an end-of-document token

    def encode(self, texts: Sequence[str]) -> list[list[int]]:
        found = self.tokenizer.encode_many(texts, add_special=self.add_special)
        if not self.before and not self.after:
            return found
        return [[*self.before, *tokens, *self.after] for tokens in found]


@dataclass(frozen=True, kw_only=True, slots=True)
class Built:
    """A table, the report of its corpus, and whether it was reused."""

    table: TokenTable
    report: CorpusReport
    labels: tuple[str, ...]  # the classes; a row's label is an index into them
    reused: bool
    why: str  # a sentence for the user


def build_table(
    path: Path | str,
    corpus: Corpus,
    columns: Mapping[str, Encoding],
    *,
    max_tokens: int | None = None,
    labels: Sequence[str] | None = None,
    progress: Callable[[int], None] | None = None,
) -> Built:
    """The tokens of a corpus: reused from `path` if built from the same input, else built there.

    `columns` names the texts of an example. Sequences of more than `max_tokens` are skipped and
    reported. A corpus with labels gets a column "label"; its classes are `labels`, or those found.
    """
    path = Path(path)
    if len(columns) != corpus.n_texts or "label" in columns:
        raise ConfigError(
            f"Each of the {corpus.n_texts} texts of an example needs a column, and none may be "
            f"called label; got {', '.join(columns)}."
        )
    wanted = origin(corpus, columns, max_tokens=max_tokens, labels=labels)
    table, why = _find_table(path, wanted)
    if table is not None:
        return _make_result(table, reused=True, why=why)
    report, classes = CorpusReport(), _Classes(labels)
    rows = encode_table(corpus, columns, report, classes, max_tokens=max_tokens)
    sizes = {name: encoding.tokenizer.vocab_size for name, encoding in columns.items()}
    if corpus.label is not None:
        sizes["label"] = 1 << 31
    table = write_table(
        path,
        rows,
        sizes,
        notes=lambda: {
            "origin": wanted,
            "report": report.as_dict(),
            "labels": list(classes.ids),
        },
        progress=progress,
    )
    return _make_result(table, reused=False, why=why)


def encode_table(
    corpus: Corpus,
    columns: Mapping[str, Encoding],
    report: CorpusReport,
    classes: "_Classes",
    *,
    max_tokens: int | None,
) -> Iterator[tuple[list[int], ...]]:
    """The rows of a corpus: one sequence per column, and the class if it has one."""
    for batch in _batches(corpus.examples(report)):
        texts = zip(*(example.texts for example in batch), strict=True)
        found = [e.encode(t) for e, t in zip(columns.values(), texts, strict=True)]
        for example, *row in zip(batch, *found, strict=True):
            if max_tokens is not None and max(map(len, row)) > max_tokens:
                report.n_kept -= 1
                report.reject(example.line, ("too long", example.file))
                continue
            if example.label is None:
                yield tuple(row)
                continue
            label = classes.id_of(example.label)
            if label is None:
                report.n_kept -= 1
                report.reject(example.line, ("unknown label", example.file))
                continue
            yield (*row, [label])
    report.check(corpus.most_bad)


def origin(
    corpus: Corpus,
    columns: Mapping[str, Encoding],
    *,
    max_tokens: int | None,
    labels: Sequence[str] | None,
) -> dict[str, Any]:
    """What a table is built from: equal origins give equal tables."""
    settings = {k: v for k, v in asdict(corpus).items() if k != "files"}
    encodings = {n: [e.add_special, e.before, e.after] for n, e in columns.items()}
    made = {
        "files": {str(path.absolute()): _read_stamp(path) for path in corpus.paths},
        "tokenizers": {name: _fingerprint(e.tokenizer) for name, e in columns.items()},
        "settings": [settings, encodings, max_tokens, None if labels is None else list(labels)],
    }
    return json.loads(json.dumps(made))  # as it is when read back


class _Classes:
    """Ids of class names: the given names, or the next id for each new name."""

    def __init__(self, names: Sequence[str] | None) -> None:
        self.ids = {name: i for i, name in enumerate(names or ())}
        self._open = names is None

    def id_of(self, name: str) -> int | None:
        if self._open:
            return self.ids.setdefault(name, len(self.ids))
        return self.ids.get(name)


def _batches(examples: Iterator[Example]) -> Iterator[list[Example]]:
    batch: list[Example] = []
    size = 0
    for example in examples:
        batch.append(example)
        size += sum(map(len, example.texts))
        if len(batch) >= _BATCH or size >= _MOST_CHARS:
            yield batch
            batch, size = [], 0
    if batch:
        yield batch


def _make_result(table: TokenTable, *, reused: bool, why: str) -> Built:
    return Built(
        table=table,
        report=CorpusReport.from_dict(table.notes["report"]),
        labels=tuple(table.notes["labels"]),
        reused=reused,
        why=why,
    )


def _find_table(path: Path, wanted: dict[str, Any]) -> tuple[TokenTable | None, str]:
    """The existing table, or None if it cannot be reused; and the reason."""
    if not path.exists():
        return None, f"{path} did not exist."
    try:
        table = TokenTable.open(path)
    except DataError as error:
        return None, str(error)
    made = table.notes.get("origin") or {}
    for what, value in wanted.items():
        if made.get(what) != value:
            return None, f"The {what} of {path} changed."
    return table, f"{path} was built from the same files."


def _read_stamp(path: Path) -> list[int]:
    try:
        state = path.stat()
    except OSError as error:
        raise DataError(f"{path} cannot be read: {error.strerror}.") from None
    return [state.st_size, state.st_mtime_ns]


def _fingerprint(tokenizer: Tokenizer) -> str:
    hashed = hashlib.sha256()
    for name, content in sorted(tokenizer.files().items()):
        hashed.update(f"{name} {len(content)}\n".encode() + content)
    return hashed.hexdigest()
