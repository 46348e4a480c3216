"""The recipe: everything that defines a run, as its TOML file has it.

task = "translation"                   what the model learns
[[data.train]] [[data.valid]]          from which files
[tokenizer] [model]                    what it consists of
[batches] [optimizer] [schedule]       how it learns
[until] [compute]                      for how long, and on what
[evaluate] [save] [show] [snapshots]   what is measured, saved and shown
"""

from collections.abc import Iterable, Mapping, Sequence
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
    as_plain,
    check_bounds,
    read_settings,
)
from glassformer.text.corpus import Corpus, Format
from glassformer.training.optimizer import Optimizer
from glassformer.training.overrides import apply_overrides
from glassformer.training.schedule import Schedule

TaskName = Literal["language", "masked", "translation", "classification"]


@dataclass(frozen=True, kw_only=True, slots=True)
class Files:
    """One source of examples, for `text.corpus.Corpus` to read."""

    files: tuple[str, ...]
    format: Format | None = None  # default: by the task (stream, documents, aligned or tsv)
    columns: tuple[Count | str, ...] = ()  # of TSV and JSON Lines; the source first
    label: Count | str | None = None  # the column of the class
    header: bool = False
    prefix: str = ""  # before each source: the token of the language to translate into
    repeat: Count = 1  # times per epoch

    def __post_init__(self) -> None:
        check_bounds(self, "data.train.")
        if not self.files:
            raise ConfigError("A source of examples must name its files; got none.")

    def corpus(self, task: str) -> Corpus:
        """The corpus that a task reads."""
        usual = {"language": "stream", "masked": "documents", "classification": "tsv"}
        columns, label = self.columns, self.label
        form: Any = self.format or usual.get(task) or ("aligned" if len(self.files) > 1 else "tsv")
        if task == "translation" and not columns:
            columns = (1, 2)
        if task == "classification" and not columns:
            columns, label = (1,), 2
        return Corpus(
            files=tuple(expand_globs(self.files)),
            format=form,
            columns=columns,
            label=label,
            header=self.header,
        )


def expand_globs(names: Iterable[str]) -> list[str]:
    """The files of these names, whose last part may hold the wildcard *."""
    files: list[str] = []
    for name in names:
        path = Path(name)
        if "\0" in name:
            raise ConfigError(f"A file name must not contain a null character; got {name!r}.")
        matching = sorted(map(str, path.parent.glob(path.name))) if "*" in name else [name]
        if not matching:
            raise ConfigError(f"{name} must match at least one file; it matches none.")
        files += matching
    return files


@dataclass(frozen=True, kw_only=True, slots=True)
class DataSettings:
    """The training files, and what is held out for validation."""

    train: tuple[Files, ...]
    valid: tuple[Files, ...] = ()
    folder: str = ""  # base of relative names; default: the recipe's folder
    valid_every: Whole = 0  # hold out one text in so many (by hash), with all its translations
    valid_share: Share = 0.0  # language: hold out this share of the text, at its end

    def __post_init__(self) -> None:
        check_bounds(self, "data.")
        if not self.train:
            raise ConfigError("A recipe must name at least one corpus in data.train; got none.")


@dataclass(frozen=True, kw_only=True, slots=True)
class TokenizerSettings:
    """A tokenizer to train on the training texts, or a saved one."""

    kind: Literal["byte-bpe", "bpe", "wordpiece", "characters", "words"] = "byte-bpe"
    vocab_size: Count | None = None  # default 8000; for characters and words: all of them
    path: str | None = None  # a folder with a tokenizer, used as it is
    lowercase: bool = False
    min_count: Count = 1
    continuation: str = ""  # words: the suffix of a subword that is continued, such as "@@"

    def __post_init__(self) -> None:
        check_bounds(self, "tokenizer.")


@dataclass(frozen=True, kw_only=True, slots=True)
class BatchSettings:
    """The batches of a step."""

    max_tokens: Count = 4096  # with padding: rows × longest row
    max_rows: Count | None = None
    max_len: Count | None = None  # longer examples are skipped and counted
    # Lengths are padded to a multiple of this, so that fewer shapes must be compiled.
    round_to: Annotated[int, Bounds(least=1, most=65_536)] = 1
    pool: Count | None = None  # examples sorted by length at a time; default: all
    packed: bool = False  # translation: texts end to end, so that padding is not computed
    accumulate: Count = 1  # gradient accumulation: batches per step
    length: Count = 256  # of a window of a long text: language, masked
    rows: Count = 64  # windows in a batch
    at_random: bool = False  # windows start anywhere instead of following one another
    documents: bool = False  # tokens attend only within their document
    # The share of tokens that a masked language model predicts.
    masked: Annotated[float, Bounds(above=0, below=1)] = 0.15

    def __post_init__(self) -> None:
        check_bounds(self, "batches.")


@dataclass(frozen=True, kw_only=True, slots=True)
class StopSettings:
    """When a run ends: at whichever limit it reaches first."""

    steps: Count | None = None
    epochs: Count | None = None
    patience: Whole = 0  # early stopping after so many evaluations without a better score; 0: never

    def __post_init__(self) -> None:
        check_bounds(self, "until.")
        if self.steps is None and self.epochs is None:
            raise ConfigError("A run needs an end; set until.steps or until.epochs.")


@dataclass(frozen=True, kw_only=True, slots=True)
class ComputeSettings:
    """How to compute; results differ by rounding only."""

    precision: Literal["fp32", "bf16", "fp16", "fp8"] = "fp32"
    residual: Literal["fp32", "half"] = "fp32"  # the residual stream; half: 16 bits, as products
    compile: bool = False
    checkpointing: bool = False  # activation checkpointing: less memory, more time
    parallel: Literal["ddp", "fsdp"] = "ddp"  # with torchrun
    tf32: bool = False  # TensorFloat-32 matrix products on GPUs

    def __post_init__(self) -> None:
        if self.residual == "half" and self.precision == "fp32":
            raise ConfigError(
                "compute.residual 'half' goes with compute.precision bf16, fp16 or fp8; got fp32. "
                "Set the precision, or leave the residual stream in fp32."
            )


@dataclass(frozen=True, kw_only=True, slots=True)
class EvaluationSettings:
    """When and how to score the validation texts."""

    every_steps: Count | None = None
    every_epochs: Count | None = None
    best: Literal["loss", "accuracy", "bleu", "chrf"] = "loss"  # the score that selects best/
    bleu: bool = False  # also translate the validation texts each time
    beams: Annotated[int, Bounds(least=1, most=1024)] = 1
    length_penalty: float = 1.0
    tokenize: str = "13a"  # sacreBLEU's; "none" for texts that are tokenized already
    remove: str = ""  # from translations and references before scoring, such as "@@ "
    n_texts: Count | None = None  # how many to translate; default: all
    n_batches: Count | None = None  # language modeling: score so many random batches
    attention: bool = False  # also the lowest entropy and the largest score of any head

    def __post_init__(self) -> None:
        check_bounds(self, "evaluate.")


@dataclass(frozen=True, kw_only=True, slots=True)
class SaveSettings:
    """Which checkpoints to save and keep."""

    every_steps: Count | None = None  # default 1000, unless one of the two is set
    every_epochs: Count | None = None
    keep: Count = 2  # checkpoints to resume from
    average: Count = 1  # model/ is the mean of the last so many checkpoints
    ema: Share = 0.0  # or the exponential moving average with this decay

    def __post_init__(self) -> None:
        check_bounds(self, "save.")
        if self.ema and self.average > 1:
            raise ConfigError(
                f"save.ema and save.average exclude each other; got ema={self.ema}, "
                f"average={self.average}."
            )


@dataclass(frozen=True, kw_only=True, slots=True)
class LogSettings:
    """How often to log, and where."""

    every: Count = 50  # steps
    tensorboard: bool = False

    def __post_init__(self) -> None:
        check_bounds(self, "show.")


@dataclass(frozen=True, kw_only=True, slots=True)
class SnapshotSettings:
    """A text to run through the model at intervals, recording its attention as a trace."""

    every: Whole = 0  # steps; 0 for never
    text: str = ""

    def __post_init__(self) -> None:
        check_bounds(self, "snapshots.")


@dataclass(frozen=True, kw_only=True, slots=True)
class Recipe:
    """A run, complete and validated.

    >>> data = {"train": [{"files": ["book.txt"]}]}
    >>> recipe = Recipe.from_dict({"task": "language", "data": data, "until": {"steps": 10}})
    >>> recipe.schedule.kind, recipe.until.steps
    ('inverse-sqrt', 10)
    """

    task: TaskName
    data: DataSettings
    until: StopSettings
    seed: Annotated[int, Bounds(least=0, most=2**63 - 1)] = 1
    out: str | None = None
    label_smoothing: Share = 0.0
    consistency: NonNegative = 0.0  # R-Drop's α: two passes per batch with different dropout masks
    tokenizer: TokenizerSettings = field(default_factory=TokenizerSettings)
    model: dict[str, Any] = field(default_factory=dict)
    batches: BatchSettings = field(default_factory=BatchSettings)
    optimizer: Optimizer = field(default_factory=Optimizer)
    schedule: Schedule = field(default_factory=Schedule)
    compute: ComputeSettings = field(default_factory=ComputeSettings)
    evaluate: EvaluationSettings = field(default_factory=EvaluationSettings)
    save: SaveSettings = field(default_factory=SaveSettings)
    show: LogSettings = field(default_factory=LogSettings)
    snapshots: SnapshotSettings = field(default_factory=SnapshotSettings)

    def __post_init__(self) -> None:
        check_bounds(self)
        if self.schedule.needs_end and self.schedule.steps is None and self.until.steps is None:
            raise ConfigError(
                f"A {self.schedule.kind!r} schedule needs a last step; "
                "set schedule.steps or until.steps."
            )
        if self.batches.packed:
            self._check_packing()

    def _check_packing(self) -> None:
        obstacles = {
            f"task = {self.task!r}": self.task != "translation",
            f"consistency = {self.consistency}": self.consistency > 0,
            "an LSTM": self.model.get("family") == "lstm",
        }
        found = [name for name, is_there in obstacles.items() if is_there]
        if found:
            raise ConfigError(
                "batches.packed packs the pairs of a Transformer that translates, each batch once; "
                f"got {found[0]}. Leave batches.packed out."
            )

    @classmethod
    def from_dict(cls, values: dict[str, Any], overrides: Sequence[str] = ()) -> "Recipe":
        """Read a recipe from plain values, with `section.key=value` overrides."""
        return read_settings(cls, apply_overrides(values, overrides), "The recipe")

    @classmethod
    def from_toml(cls, path: str | Path, overrides: Sequence[str] = ()) -> "Recipe":
        """Read a recipe file; relative paths in it are relative to its folder."""
        path = user_path(path, ConfigError)
        return cls.from_dict(read_toml(path), overrides).resolve_paths(path.parent)

    def resolve_paths(self, folder: Path) -> "Recipe":
        """The same recipe with absolute paths."""

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
        """The schedule, with missing values filled in from the rest of the recipe."""
        known: dict[str, Any] = {}
        if self.schedule.needs_end and self.schedule.steps is None:
            known["steps"] = self.until.steps
        if self.schedule.kind == "noam" and self.schedule.dim is None:
            known["dim"] = self.model.get("dim")
        return replace(self.schedule, **known)

    def as_toml(self) -> str:
        """The recipe as a file that `from_toml` reads back."""
        import tomli_w  # imported here because reading a recipe does not need it

        return tomli_w.dumps(as_plain(self, keep_none=False))

    def essence(self) -> dict[str, Any]:
        """The settings that determine the weights, without run length, logging and paths."""
        values = as_plain(replace(self, schedule=self.full_schedule), keep_none=False)
        for name in ("out", "until", "evaluate", "show", "snapshots"):
            values.pop(name, None)
        values["save"] = {"ema": self.save.ema}
        values["compute"].pop("parallel")
        for part in ("train", "valid"):  # a resumed run compares the texts, not their paths
            for corpus in values["data"].get(part, ()):
                corpus.pop("files")
        values["tokenizer"].pop("path", None)
        return _flatten(values)


def _flatten(values: Mapping[str, Any], where: str = "") -> dict[str, Any]:
    """Nested tables as one, with dotted keys."""
    flat: dict[str, Any] = {}
    for name, value in values.items():
        inner = isinstance(value, Mapping)
        flat |= _flatten(value, f"{where}{name}.") if inner else {f"{where}{name}": value}
    return flat
