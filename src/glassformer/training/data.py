"""From a recipe's files to a tokenizer and tokens, saved in the run folder.

    files ─ examples ─┬─ tokenizer/                      trained, or copied
                      └─ tokens/train, valid ─ report.json

Each folder has a list of hashes, which a resumed run verifies before it reads the tokens. The text
files themselves are read only once.
"""

import hashlib
import json
from collections.abc import Iterable, Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from glassformer.errors import CheckpointError, ConfigError, DataError
from glassformer.storage import atomic_file, read_regular
from glassformer.text import SpecialTokens, Tokenizer, read_tokenizer
from glassformer.text.corpus_report import CorpusReport
from glassformer.text.store import TokenTable, write_table
from glassformer.text.tokenizer_training import learn_tokenizer
from glassformer.training.checksums import checksum_lines, find_damage, write_checksums
from glassformer.training.finetuning import load_base_model
from glassformer.training.recipe import Recipe

ENCODED_TOGETHER = 1000  # texts tokenized in one call
COLUMNS = {
    "language": ("tokens",),
    "masked": ("tokens",),
    "classification": ("tokens",),
    "translation": ("source", "target"),
}


@dataclass
class TrainingData:
    """The tokenizer and tokens that a task trains on."""

    tokenizer: Tokenizer
    special: SpecialTokens
    train: TokenTable
    valid: TokenTable | None
    classes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class TrainingExample:
    """One text or a pair of texts, its class, and its origin."""

    texts: tuple[str, ...]
    label: str | None
    place: tuple[str, int]  # file and line


def prepare_data(recipe: Recipe, folder: Path, *, has_begun: bool = False) -> None:
    """Write the tokenizer, the tokens and a report to the run folder, unless they are there.

    Once training has begun, damaged data is an error and is not rebuilt: the text files may have
    changed since.
    """
    damage = {name: find_damage(folder / name) for name in ("tokenizer", "tokens")}
    for name, why in damage.items():
        if has_begun and why is not None:
            raise CheckpointError(
                f"{folder / name} is damaged: {why}. Restore it from a copy, or start a new run "
                "with another --out."
            )
    if damage["tokenizer"] is not None:
        _write_tokenizer(folder / "tokenizer", *_make_tokenizer(recipe))
    elif damage["tokens"] is None:
        return
    tokenizer, special = read_saved_tokenizer(folder / "tokenizer")
    reports, skipped = {}, {}
    for part in ("train", "valid"):
        if part == "valid" and not (recipe.data.valid or recipe.data.valid_every):
            continue
        reports[part], skipped[part] = CorpusReport(), []
        _write_tokens(recipe, part, folder, tokenizer, special, reports[part], skipped[part])
    content = {
        part: {**report.as_dict(), "left out as too long": skipped[part]}
        for part, report in reports.items()
    }
    with atomic_file(folder / "report.json") as new:
        new.write_text(json.dumps(content, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
    files = [f"{part}.safetensors" for part in reports]
    write_checksums(folder / "tokens", checksum_lines(folder / "tokens", files))


def open_data(folder: Path) -> TrainingData:
    """Open the data that `prepare_data` wrote to a run folder."""
    tokenizer, special = read_saved_tokenizer(folder / "tokenizer")
    tables = {path.stem: path for path in (folder / "tokens").glob("*.safetensors")}
    train, valid = (
        TokenTable.open(tables[part], verify=False) if part in tables else None
        for part in ("train", "valid")
    )
    if train is None:
        raise DataError(f"{folder / 'tokens'} must hold the tokens to train with; it does not.")
    for part, table in (("train", train), ("valid", valid)):
        if table is not None:
            table.check_tokens(tokenizer.vocab_size, tables[part])
    return TrainingData(
        tokenizer=tokenizer,
        special=special,
        train=train,
        valid=valid,
        classes=tuple(train.notes.get("classes", ())),
    )


def read_examples(recipe: Recipe, part: str, report: CorpusReport) -> Iterator[TrainingExample]:
    """The examples for training or validation; held-out examples are for validation only."""
    data = recipe.data
    own = data.train if part == "train" or not data.valid else data.valid
    held_out = data.valid_every if not data.valid else 0
    for files in own:
        for _ in range(files.repeat if part == "train" else 1):
            for example in files.corpus(recipe.task).examples(report):
                if held_out and is_held_out(example.texts[0], held_out) != (part == "valid"):
                    continue
                first = files.prefix + example.texts[0]
                yield TrainingExample(
                    (first, *example.texts[1:]), example.label, (str(example.file), example.line)
                )


def is_held_out(text: str, every: int) -> bool:
    """Whether a text is held out for validation: one in `every`, by its hash.

    >>> [i for i in range(300) if is_held_out(str(i), 60)]
    [107, 158, 191, 236]
    """
    return int(hashlib.md5(text.lower().encode()).hexdigest(), 16) % every == 0


def _make_tokenizer(recipe: Recipe) -> tuple[Tokenizer, SpecialTokens]:
    settings = recipe.tokenizer
    if settings.path is not None:
        return read_saved_tokenizer(Path(settings.path))
    origin = load_base_model(recipe)
    if origin is not None:
        return origin.tokenizer, origin.special
    documents = any(f.format not in (None, "stream") for f in recipe.data.train)
    around = {"translation": "end", "language": "begin" if documents else "none"}.get(
        recipe.task, "class" if settings.kind == "wordpiece" else "both"
    )
    vocab_size = settings.vocab_size
    if vocab_size is None and settings.kind not in ("characters", "words"):
        vocab_size = 8000
    seen = (
        text for example in read_examples(recipe, "train", CorpusReport()) for text in example.texts
    )
    prefixes = (files.prefix.strip() for files in recipe.data.train)
    return learn_tokenizer(
        seen,
        settings.kind,
        vocab_size,
        around=around,  # type: ignore[arg-type]
        roles=("mask",) if recipe.task == "masked" else (),
        extra=list(dict.fromkeys(filter(None, prefixes))),
        lowercase=settings.lowercase,
        min_count=settings.min_count,
        continued=settings.continuation,
    )


def _write_tokenizer(folder: Path, tokenizer: Tokenizer, special: SpecialTokens) -> None:
    files = tokenizer.files() | {"special.json": (json.dumps(asdict(special)) + "\n").encode()}
    for name, content in files.items():
        with atomic_file(folder / name) as new:
            new.write_bytes(content)
    write_checksums(folder, checksum_lines(folder, files))


def read_saved_tokenizer(folder: Path) -> tuple[Tokenizer, SpecialTokens]:
    """A tokenizer and its special tokens, from a run's folder or from a saved model."""
    tokenizer = read_tokenizer(folder) if folder.is_dir() else None
    if tokenizer is None:
        raise ConfigError(f"tokenizer.path must be a folder with a tokenizer; {folder} is not.")
    for name in ("special.json", "config.json"):
        if (folder / name).is_file():
            return tokenizer, _read_special(folder / name)
    raise ConfigError(
        f"{folder} must say which tokens begin and end a text; it has neither special.json nor "
        "glassformer's config.json. Save the tokenizer together with a glassformer model."
    )


def _read_special(path: Path) -> SpecialTokens:
    try:
        plain = json.loads(read_regular(path))
    except OSError as error:
        raise CheckpointError(f"{path} cannot be read: {error.strerror}.") from None
    except (ValueError, RecursionError) as error:
        raise CheckpointError(f"{path} is not JSON: {error}.") from None
    if isinstance(plain, dict) and path.name == "config.json":
        plain = plain.get("special", {})
    if not isinstance(plain, dict):
        raise CheckpointError(f"{path} must hold the special tokens; it holds {plain!r:.80}.")
    return SpecialTokens.from_dict(plain)


def _write_tokens(
    recipe: Recipe,
    part: str,
    folder: Path,
    tokenizer: Tokenizer,
    special: SpecialTokens,
    report: CorpusReport,
    skipped: list[list[Any]],
) -> None:
    columns, most = COLUMNS[recipe.task], recipe.batches.max_len
    files: dict[str, int] = {}
    places: list[list[int]] = []
    labels: list[str] = []
    kept: list[tuple[str, ...]] = []
    is_stream = recipe.task in ("language", "masked")

    def rows() -> Iterator[list[list[int]]]:
        for example, tokens in _encode(read_examples(recipe, part, report), tokenizer):
            if most is not None and not is_stream and max(map(len, tokens)) > most:
                skipped.append([*example.place, max(map(len, tokens))])
                continue
            ends = special.end if recipe.task == "language" and special.begin is not None else ()
            if not is_stream:
                file, line = example.place
                places.append([files.setdefault(file, len(files)), line])
                if part == "valid":
                    kept.append(example.texts)
            if example.label is not None:
                labels.append(example.label)
            yield [[*each, *ends] for each in tokens] if ends else tokens

    def notes() -> dict[str, Any]:
        return {
            "files": list(files),
            "places": places,
            "texts": kept,
            "labels": labels,
            "classes": sorted(set(labels)),
        }

    sizes = dict.fromkeys(columns, tokenizer.vocab_size)
    (folder / "tokens").mkdir(parents=True, exist_ok=True)
    table = write_table(folder / "tokens" / f"{part}.safetensors", rows(), sizes, notes=notes)
    if len(table) == 0:
        purpose = {"train": "train", "valid": "validate"}[part]
        advice = "Raise batches.max_len." if skipped else "Lower data.valid_every, or add examples."
        raise DataError(
            f"At least one example to {purpose} with is required; none of {report.n_kept} is "
            f"left. {advice}"
        )


def _encode(
    examples: Iterable[TrainingExample], tokenizer: Tokenizer
) -> Iterator[tuple[TrainingExample, list[list[int]]]]:
    some: list[TrainingExample] = []
    for example in examples:
        some.append(example)
        if len(some) == ENCODED_TOGETHER:
            yield from _encode_together(some, tokenizer)
            some = []
    yield from _encode_together(some, tokenizer)


def _encode_together(
    some: list[TrainingExample], tokenizer: Tokenizer
) -> Iterator[tuple[TrainingExample, list[list[int]]]]:
    left = iter(tokenizer.encode_many([text for each in some for text in each.texts]))
    for example in some:
        yield example, [next(left) for _ in example.texts]
