"""Default recipes for a new user's own files: sizes and length follow from the amount of data."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from glassformer.settings import as_plain
from glassformer.text.lines import count_lines
from glassformer.training.recipe import Recipe

N_CHECKPOINTS = 20  # evaluations and checkpoints in a whole run


@dataclass(frozen=True, slots=True)
class Length:
    """How long to train: a number of epochs, within limits on the steps.

    >>> Length(n_tokens=600_000, batch_tokens=4096, epochs=40, least=500, most=20_000).steps
    5880
    >>> Length(n_tokens=900, batch_tokens=512, epochs=40, least=500, most=20_000).steps
    500
    """

    n_tokens: int
    batch_tokens: int
    epochs: int
    least: int  # steps
    most: int

    @property
    def steps(self) -> int:
        per_epoch = -(-self.n_tokens // self.batch_tokens)
        return min(self.most, max(self.least, self.epochs * per_epoch))

    def settings(self, schedule: dict[str, Any], *, warmup: int, **until: Any) -> dict[str, Any]:
        """The sections of a recipe that depend on the length."""
        every = max(1, self.steps // N_CHECKPOINTS)
        return {
            "schedule": {**schedule, "warmup": min(warmup, self.steps // 10)},
            "until": {"steps": self.steps, **until},
            "evaluate": {"every_steps": every},
            "save": {"every_steps": every},
            "show": {"every": min(50, every)},
        }


def translation_recipe(source: str, target: str, **changes: Any) -> Recipe:
    """A translator from two aligned files."""
    n = count_lines(Path(source))
    large = n >= 20_000
    n_tokens = max(_count_bytes(source), _count_bytes(target)) // 3
    batch_tokens = min(4096, max(512, n_tokens // 20))  # even little data makes several batches
    length = Length(n_tokens, batch_tokens, epochs=40, least=500, most=20_000)
    sections = length.settings({"kind": "inverse-sqrt", "lr": 0.002}, warmup=500, patience=8)
    share = 0.1 if large else 0.2
    values: dict[str, Any] = {
        "task": "translation",
        "label_smoothing": 0.1,
        "data": {
            "train": [{"files": [source, target]}],
            # Enough to see whether it learns, without taking much from the training data.
            "valid_every": 0 if n < 100 else max(20, n // 1000),
        },
        "tokenizer": {"kind": "byte-bpe", "vocab_size": 8000 if large else 2000},
        "model": {
            "preset": "laptop-translator",
            "dim": 256 if large else 128,
            "n_layers": 4 if large else 3,
            "initial": "xavier",
            "dropout": {"embedding": share, "weights": 0.0, "hidden": 0.0, "residual": share},
        },
        "batches": {"max_tokens": batch_tokens, "max_len": 200},
        "optimizer": {"kind": "adam", "clip": 1.0},
        **sections,
        "save": {**sections["save"], "average": 4},
        **changes,
    }
    return Recipe.from_dict(values)


def language_recipe(text: str, **changes: Any) -> Recipe:
    """A language model of a text file; short texts are modeled character by character."""
    size = _count_bytes(text)
    short = size < 5_000_000
    n_tokens = size if short else size // 4
    window = min(128, max(8, n_tokens // 16))  # even a short text has several windows
    length = Length(n_tokens, window * 32, epochs=8, least=300, most=5000)
    values: dict[str, Any] = {
        "task": "language",
        "data": {"train": [{"files": [text]}], "valid_share": 0.1},
        "tokenizer": {"kind": "characters"} if short else {"kind": "byte-bpe", "vocab_size": 8000},
        "model": {
            "preset": "laptop-decoder",
            "dim": 192 if short else 256,
            "n_layers": 4 if short else 6,
            "initial": "gpt2",
        },
        "batches": {"length": window, "rows": 32},
        "optimizer": {"kind": "adamw", "betas": [0.9, 0.99], "weight_decay": 0.1},
        **length.settings({"kind": "cosine", "lr": 1e-3, "least": 1e-4}, warmup=100),
        **changes,
    }
    return Recipe.from_dict(values)


def finetuning_recipe(
    base: str, *, source: str = "", target: str = "", text: str = "", to: str | None = None
) -> Recipe:
    """Fine-tune a saved model on a user's own files, with a small learning rate and few steps.

    `to` is the target language, for a translator with several.
    """
    n_tokens = max(map(_count_bytes, filter(None, (source, target, text)))) // 3
    length = Length(n_tokens, 4096, epochs=10, least=100, most=1000)
    sections = length.settings({"kind": "cosine", "lr": 2e-4, "least": 1e-5}, warmup=50)
    changes: dict[str, Any] = {"model": {"from": base}, "tokenizer": {}, **sections}
    if text:
        return language_recipe(text, **changes)
    values = as_plain(translation_recipe(source, target, **changes), keep_none=False)
    values["data"]["train"][0]["prefix"] = f"<{to}> " if to else ""
    return Recipe.from_dict(values)


def _count_bytes(path: str) -> int:
    return Path(path).stat().st_size if Path(path).is_file() else 0
