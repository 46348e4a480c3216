"""The recipe: everything that a run is, as a TOML file has it.

task = "translation"                  what is learned
[[data.train]] [[data.valid]]         from which files
[tokenizer] [model]                   what it is made of
[batches] [optimizer] [schedule]      how it is learned
[until] [compute]                     how long, and on what
[evaluate] [save] [show] [film]       what is seen and kept of it
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Annotated, Any, Literal

from glassformer.errors import ConfigError
from glassformer.parsing import read_toml
from glassformer.paths import is_folder, user_path
from glassformer.settings import (
    Bounds,
    Count,
    NonNegative,
    Share,
    Whole,
    check_bounds,
    read_settings,
)
from glassformer.text.corpus import Corpus, Format
from glassformer.training.optimizer import Optimizer
from glassformer.training.schedule import Schedule
from glassformer.training.settings import as_toml, changed, flattened, plain

TaskName = Literal["language", "masked", "translation", "classification"]


@dataclass(frozen=True, kw_only=True, slots=True)
class Files:
    """One source of examples, as `text.corpus.Corpus` reads them."""

    files: tuple[str, ...]
    format: Format | None = None  # stream, documents, aligned or tsv by the task, unless given
    columns: tuple[Count | str, ...] = ()  # of tables and JSON lines; the source first
    label: Count | str | None = None  # the column of the class
    header: bool = False
    prefix: str = ""  # put before each source: the token that names the language to write
    repeat: Count = 1  # how often an epoch sees it

    def __post_init__(self) -> None:
        check_bounds(self, "data.train.")
        if not self.files:
            raise ConfigError("A source of examples must name its files; got none.")

    def corpus(self, task: str) -> Corpus:
        """What is to be read for a task."""
        usual = {"language": "stream", "masked": "documents", "classification": "tsv"}
        columns, label = self.columns, self.label
        form: Any = self.format or usual.get(task) or ("aligned" if len(self.files) > 1 else "tsv")
        if task == "translation" and not columns:
            columns = (1, 2)
        if task == "classification" and not columns:
            columns, label = (1,), 2
        return Corpus(
            files=tuple(found(self.files)),
            format=form,
            columns=columns,
            label=label,
            header=self.header,
        )


def found(names: Iterable[str]) -> list[str]:
    """Files by their names, in whose last part * may stand for any letters."""
    files: list[str] = []
    for name in names:
        path = Path(name)
        if "\0" in name:
            raise ConfigError(f"A file's name must not have a null character; got {name!r}.")
        matching = sorted(map(str, path.parent.glob(path.name))) if "*" in name else [name]
        if not matching:
            raise ConfigError(f"{name} must match at least one file; it matches none.")
        files += matching
    return files


@dataclass(frozen=True, kw_only=True, slots=True)
class Data:
    """The files, and what of them is held out to validate with."""

    train: tuple[Files, ...]
    valid: tuple[Files, ...] = ()
    folder: str = ""  # where relative names begin; the recipe's own folder unless given
    valid_every: Whole = 0  # hold out one text in so many, by a hash: all its translations with it
    valid_share: Share = 0.0  # language: hold out so much of the text, at its end

    def __post_init__(self) -> None:
        check_bounds(self, "data.")
        if not self.train:
            raise ConfigError("A recipe must name at least one corpus in data.train; got none.")


@dataclass(frozen=True, kw_only=True, slots=True)
class TokenizerSettings:
    """A tokenizer to learn from the training texts, or one that is there."""

    kind: Literal["byte-bpe", "bpe", "wordpiece", "characters", "words"] = "byte-bpe"
    vocab_size: Count | None = (
        None  # 8000 unless given; as many as there are, for the last two kinds
    )
    path: str | None = None  # a folder with a tokenizer: nothing is learned
    lowercase: bool = False
    min_count: Count = 1
    continued: str = ""  # words: what ends a part of a word whose next part follows, such as "@@"

    def __post_init__(self) -> None:
        check_bounds(self, "tokenizer.")


@dataclass(frozen=True, kw_only=True, slots=True)
class BatchSettings:
    """What a step sees."""

    max_tokens: Count = 4096  # padded, in rows × longest
    max_rows: Count | None = None
    max_len: Count | None = None  # longer examples are left out, and counted
    round_to: Annotated[int, Bounds(least=1, most=65_536)] = (
        1  # lengths are padded to a multiple: fewer shapes to compile
    )
    pool: Count | None = None  # examples that are sorted by length at a time; all unless given
    accumulate: Count = 1  # batches per step
    length: Count = 256  # of a window of a long text: language, masked
    rows: Count = 64  # windows in a batch
    at_random: bool = False  # windows anywhere, instead of one behind the other
    documents: bool = False  # tokens see their own document alone
    masked: Annotated[float, Bounds(above=0, below=1)] = (
        0.15  # the share of tokens that a masked language model must guess
    )

    def __post_init__(self) -> None:
        check_bounds(self, "batches.")


@dataclass(frozen=True, kw_only=True, slots=True)
class Until:
    """When a run ends: whichever comes first."""

    steps: Count | None = None
    epochs: Count | None = None
    patience: Whole = 0  # evaluations in a row without a better score; 0 never stops early

    def __post_init__(self) -> None:
        check_bounds(self, "until.")
        if self.steps is None and self.epochs is None:
            raise ConfigError("A recipe must say when to end; give until.steps or until.epochs.")


@dataclass(frozen=True, kw_only=True, slots=True)
class Compute:
    """How it is computed; the result is the same but for rounding."""

    precision: Literal["fp32", "bf16", "fp16"] = "fp32"
    compile: bool = False
    checkpointing: bool = False  # recompute blocks on the way back: less memory, more time
    parallel: Literal["ddp", "fsdp"] = "ddp"  # with torchrun
    tf32: bool = False  # float32 matrices with 10 bits behind the point, on graphics cards


@dataclass(frozen=True, kw_only=True, slots=True)
class Evaluate:
    """When and how validation texts are scored."""

    every_steps: Count | None = None
    every_epochs: Count | None = None
    best: Literal["loss", "accuracy", "bleu", "chrf"] = "loss"  # what decides about best/
    bleu: bool = False  # translate the validation texts each time, too
    beams: Annotated[int, Bounds(least=1, most=1024)] = 1
    length_penalty: float = 1.0
    tokenize: str = "13a"  # sacreBLEU's; "none" for texts that are tokenised already
    remove: str = ""  # from translations and references before they are compared, such as "@@ "
    n_texts: Count | None = None  # how many to translate; all unless given
    n_batches: Count | None = None  # language, at random: how many batches to score

    def __post_init__(self) -> None:
        check_bounds(self, "evaluate.")


@dataclass(frozen=True, kw_only=True, slots=True)
class Save:
    """What is kept of a run."""

    every_steps: Count | None = None  # 1000, unless this or the next is given
    every_epochs: Count | None = None
    keep: Count = 2  # checkpoints to resume from
    average: Count = 1  # model/ is the mean of the last so many checkpoints
    ema: Share = 0.0  # or the moving average with this decay

    def __post_init__(self) -> None:
        check_bounds(self, "save.")
        if self.ema and self.average > 1:
            raise ConfigError(
                f"model/ is one mean or the other; got ema={self.ema}, average={self.average}."
            )


@dataclass(frozen=True, kw_only=True, slots=True)
class Show:
    """The display and the metrics."""

    every: Count = 50  # steps
    tensorboard: bool = False

    def __post_init__(self) -> None:
        check_bounds(self, "show.")


@dataclass(frozen=True, kw_only=True, slots=True)
class Film:
    """A text that is run through the model at intervals, its attention kept as a trace."""

    every: Whole = 0  # steps; 0 for never
    text: str = ""

    def __post_init__(self) -> None:
        check_bounds(self, "film.")


@dataclass(frozen=True, kw_only=True, slots=True)
class Recipe:
    """A run, whole and validated.

    >>> data = {"train": [{"files": ["book.txt"]}]}
    >>> recipe = Recipe.from_dict({"task": "language", "data": data, "until": {"steps": 10}})
    >>> recipe.schedule.kind, recipe.until.steps
    ('inverse-sqrt', 10)
    """

    task: TaskName
    data: Data
    until: Until
    seed: Annotated[int, Bounds(least=0, most=2**63 - 1)] = 1
    out: str | None = None
    label_smoothing: Share = 0.0
    consistency: NonNegative = 0.0  # R-Drop's α: batches are seen twice, and answers shall agree
    tokenizer: TokenizerSettings = field(default_factory=TokenizerSettings)
    model: dict[str, Any] = field(default_factory=dict)
    batches: BatchSettings = field(default_factory=BatchSettings)
    optimizer: Optimizer = field(default_factory=Optimizer)
    schedule: Schedule = field(default_factory=Schedule)
    compute: Compute = field(default_factory=Compute)
    evaluate: Evaluate = field(default_factory=Evaluate)
    save: Save = field(default_factory=Save)
    show: Show = field(default_factory=Show)
    film: Film = field(default_factory=Film)

    def __post_init__(self) -> None:
        check_bounds(self)
        if self.schedule.needs_end and self.schedule.steps is None and self.until.steps is None:
            raise ConfigError(
                f"A schedule of kind {self.schedule.kind!r} must know when it ends; "
                "give schedule.steps or until.steps."
            )

    @classmethod
    def from_dict(cls, values: dict[str, Any], changes: Sequence[str] = ()) -> "Recipe":
        """The recipe of plain values, with `section.key=value` changes."""
        return read_settings(cls, changed(values, changes), "The recipe")

    @classmethod
    def from_toml(cls, path: str | Path, changes: Sequence[str] = ()) -> "Recipe":
        """The recipe in a file; its relative names are relative to the file's folder."""
        path = user_path(path, ConfigError)
        return cls.from_dict(read_toml(path), changes).beside(path.parent)

    def beside(self, folder: Path) -> "Recipe":
        """The same with absolute names for its files."""

        def at(root: Path, name: str) -> str:
            return str(root / user_path(name, ConfigError))

        folder = folder.absolute()
        root = folder / user_path(self.data.folder, ConfigError)
        corpora = {
            part: tuple(
                replace(each, files=tuple(at(root, name) for name in each.files))
                for each in getattr(self.data, part)
            )
            for part in ("train", "valid")
        }
        path = self.tokenizer.path
        tokenizer = replace(self.tokenizer, path=path and at(folder, path))
        data = replace(self.data, folder="", **corpora)
        model, origin = dict(self.model), self.model.get("from")
        if isinstance(origin, str) and is_folder(folder / origin):
            model["from"] = at(folder, origin)
        return replace(self, data=data, tokenizer=tokenizer, model=model)

    @property
    def full_schedule(self) -> Schedule:
        """The schedule with what the rest of the recipe says about it."""
        known: dict[str, Any] = {}
        if self.schedule.needs_end and self.schedule.steps is None:
            known["steps"] = self.until.steps
        if self.schedule.kind == "noam" and self.schedule.dim is None:
            known["dim"] = self.model.get("dim")
        return replace(self.schedule, **known)

    def as_toml(self) -> str:
        """The recipe as a file that `from_toml` reads back."""
        return as_toml(plain(self)) + "\n"

    def essence(self) -> dict[str, Any]:
        """What decides about the weights: all but how long, how often to look, and where."""
        values = plain(replace(self, schedule=self.full_schedule))
        for name in ("out", "until", "evaluate", "show", "film"):
            values.pop(name, None)
        values["save"] = {"ema": self.save.ema}
        values["compute"].pop("parallel")
        for part in ("train", "valid"):  # the texts themselves are compared, not their places
            for corpus in values["data"].get(part, ()):
                corpus.pop("files")
        values["tokenizer"].pop("path", None)
        return flattened(values)
