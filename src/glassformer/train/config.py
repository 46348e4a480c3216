"""The recipe: everything that a run is, as a TOML file has it.

task = "translation"                  what is learned
[[data.train]] [[data.valid]]         from which files
[tokenizer] [model]                   what it is made of
[batches] [optimizer] [schedule]      how it is learned
[until] [compute]                     how long, and on what
[evaluate] [save] [show] [film]       what is seen and kept of it
"""

import math
import tomllib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Literal

from glassformer.errors import ConfigError
from glassformer.text.corpus import Corpus, Format
from glassformer.train.optimizer import Optimizer
from glassformer.train.schedule import Schedule
from glassformer.train.settings import as_toml, changed, flattened, plain, settings

TaskName = Literal["language", "masked", "translation", "classification"]


@dataclass(frozen=True, kw_only=True, slots=True)
class Files:
    """One source of examples, as `text.corpus.Corpus` reads them."""

    files: tuple[str, ...]
    format: Format | None = None  # stream, documents, aligned or tsv by the task, unless given
    columns: tuple[int | str, ...] = ()  # of tables and JSON lines; the source first
    label: int | str | None = None  # the column of the class
    header: bool = False
    prefix: str = ""  # put before each source: the token that names the language to write
    repeat: int = 1  # how often an epoch sees it

    def __post_init__(self) -> None:
        if not self.files:
            raise ConfigError("A source of examples must name its files; got none.")
        if self.repeat < 1:
            raise ConfigError(f"repeat must be at least 1; got repeat={self.repeat}.")

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
    valid_every: int = 0  # hold out one text in so many, by a hash: all its translations with it
    valid_share: float = 0.0  # language: hold out so much of the text, at its end

    def __post_init__(self) -> None:
        if not self.train:
            raise ConfigError("A recipe must name at least one corpus in data.train; got none.")
        if not 0 <= self.valid_share < 1:
            raise ConfigError(
                f"data.valid_share must be in 0 … 1, without 1; got {self.valid_share}."
            )


@dataclass(frozen=True, kw_only=True, slots=True)
class TokenizerSettings:
    """A tokenizer to learn from the training texts, or one that is there."""

    kind: Literal["byte-bpe", "bpe", "wordpiece", "characters", "words"] = "byte-bpe"
    vocab_size: int | None = None  # 8000 unless given; as many as there are, for the last two kinds
    path: str | None = None  # a folder with a tokenizer: nothing is learned
    lowercase: bool = False
    min_count: int = 1
    continued: str = ""  # words: what ends a part of a word whose next part follows, such as "@@"


@dataclass(frozen=True, kw_only=True, slots=True)
class BatchSettings:
    """What a step sees."""

    max_tokens: int = 4096  # padded, in rows × longest
    max_rows: int | None = None
    max_len: int | None = None  # longer examples are left out, and counted
    round_to: int = 1  # lengths are padded to a multiple: fewer shapes to compile
    pool: int | None = None  # examples that are sorted by length at a time; all unless given
    accumulate: int = 1  # batches per step
    length: int = 256  # of a window of a long text: language, masked
    rows: int = 64  # windows in a batch
    at_random: bool = False  # windows anywhere, instead of one behind the other
    documents: bool = False  # tokens see their own document alone
    masked: float = 0.15  # the share of tokens that a masked language model must guess

    def __post_init__(self) -> None:
        for name in ("max_tokens", "round_to", "accumulate", "length", "rows"):
            if getattr(self, name) < 1:
                raise ConfigError(f"batches.{name} must be at least 1; got {getattr(self, name)}.")
        if not 0 < self.masked < 1:
            raise ConfigError(f"batches.masked must be between 0 and 1; got {self.masked}.")


@dataclass(frozen=True, kw_only=True, slots=True)
class Until:
    """When a run ends: whichever comes first."""

    steps: int | None = None
    epochs: int | None = None
    patience: int = 0  # evaluations in a row without a better score; 0 never stops early

    def __post_init__(self) -> None:
        if self.steps is None and self.epochs is None:
            raise ConfigError("A recipe must say when to end; give until.steps or until.epochs.")
        for name in ("steps", "epochs"):
            value = getattr(self, name)
            if value is not None and value < 1:
                raise ConfigError(f"until.{name} must be at least 1; got {value}.")


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

    every_steps: int | None = None
    every_epochs: int | None = None
    best: Literal["loss", "accuracy", "bleu", "chrf"] = "loss"  # what decides about best/
    bleu: bool = False  # translate the validation texts each time, too
    beams: int = 1
    length_penalty: float = 1.0
    tokenize: str = "13a"  # sacreBLEU's; "none" for texts that are tokenised already
    remove: str = ""  # from translations and references before they are compared, such as "@@ "
    n_texts: int | None = None  # how many to translate; all unless given
    n_batches: int | None = None  # language, at random: how many batches to score


@dataclass(frozen=True, kw_only=True, slots=True)
class Save:
    """What is kept of a run."""

    every_steps: int | None = None  # 1000, unless this or the next is given
    every_epochs: int | None = None
    keep: int = 2  # checkpoints to resume from
    average: int = 1  # model/ is the mean of the last so many checkpoints
    ema: float = 0.0  # or the moving average with this decay

    def __post_init__(self) -> None:
        if self.keep < 1 or self.average < 1:
            raise ConfigError(
                f"save.keep and save.average must be at least 1; got {self.keep}, {self.average}."
            )
        if not 0 <= self.ema < 1:
            raise ConfigError(f"save.ema must be in 0 … 1, without 1; got {self.ema}.")
        if self.ema and self.average > 1:
            raise ConfigError(
                f"model/ is one mean or the other; got ema={self.ema}, average={self.average}."
            )


@dataclass(frozen=True, kw_only=True, slots=True)
class Show:
    """The display and the metrics."""

    every: int = 50  # steps
    tensorboard: bool = False


@dataclass(frozen=True, kw_only=True, slots=True)
class Film:
    """A text that is run through the model at intervals, its attention kept as a trace."""

    every: int = 0  # steps; 0 for never
    text: str = ""


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
    seed: int = 1
    out: str | None = None
    label_smoothing: float = 0.0
    consistency: float = 0.0  # R-Drop's α: batches are seen twice, and answers shall agree
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
        if not 0 <= self.label_smoothing < 1:
            raise ConfigError(
                f"label_smoothing must be in 0 … 1, without 1; got {self.label_smoothing}."
            )
        if not 0 <= self.consistency < math.inf:
            raise ConfigError(f"consistency must be at least 0; got {self.consistency}.")
        if self.seed < 0:
            raise ConfigError(f"seed must be at least 0; got {self.seed}.")
        if self.schedule.needs_end and self.schedule.steps is None and self.until.steps is None:
            raise ConfigError(
                f"A schedule of kind {self.schedule.kind!r} must know when it ends; "
                "give schedule.steps or until.steps."
            )

    @classmethod
    def from_dict(cls, values: dict[str, Any], changes: Sequence[str] = ()) -> "Recipe":
        """The recipe of plain values, with `section.key=value` changes."""
        return settings(cls, changed(values, changes))

    @classmethod
    def from_toml(cls, path: str | Path, changes: Sequence[str] = ()) -> "Recipe":
        """The recipe in a file; its relative names are relative to the file's folder."""
        path = Path(path).expanduser()
        try:
            values = tomllib.loads(path.read_text(encoding="utf-8"))
        except OSError as error:
            raise ConfigError(f"{path} cannot be read: {error.strerror}.") from None
        except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
            raise ConfigError(f"{path} is not TOML: {error}.") from None
        return cls.from_dict(values, changes).beside(path.parent)

    def beside(self, folder: Path) -> "Recipe":
        """The same with absolute names for its files."""

        def at(root: Path, name: str) -> str:
            return str(root / Path(name).expanduser())

        folder = folder.absolute()
        root = folder / Path(self.data.folder).expanduser()
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
        if isinstance(origin, str) and (folder / origin).is_dir():
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
