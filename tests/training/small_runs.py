"""Runs small enough for a test: letters that a model learns in seconds on one core."""

import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import glassformer as gf
from glassformer.settings import as_plain
from glassformer.training import Recipe, train
from glassformer.training.display import SilentDisplay

LETTERS = "abcdefgh"
MODEL = {
    "dim": 32,
    "n_layers": 1,
    "n_heads": 2,
    "hidden_dim": 64,
    "max_len": 64,
    "positions": {"kind": "rotary"},
    "norms": {"place": "pre"},
}


def words(n: int, seed: int = 0, low: int = 2, high: int = 5) -> list[str]:
    """Different random words of letters."""
    rng = random.Random(seed)
    found: dict[str, None] = {}
    while len(found) < n:
        found["".join(rng.choices(LETTERS, k=rng.randint(low, high)))] = None
    return list(found)


def pairs(folder: Path, n: int = 1000) -> tuple[Path, Path]:
    """Words, and the same words backwards, letter by letter."""
    source, target = folder / "words.txt", folder / "backwards.txt"
    some = words(n)
    source.write_text("".join(" ".join(word) + "\n" for word in some))
    target.write_text("".join(" ".join(reversed(word)) + "\n" for word in some))
    return source, target


def translation(folder: Path, **changes: Any) -> Recipe:
    """Learn to write words backwards."""
    source, target = pairs(folder)
    values: dict[str, Any] = {
        "task": "translation",
        "data": {"train": [{"files": [str(source), str(target)]}], "valid_every": 10},
        "tokenizer": {"kind": "words"},
        "model": {**MODEL, "n_layers": 2},
        "batches": {"max_tokens": 512},
        "optimizer": {"kind": "adamw", "clip": 1.0},
        "schedule": {"kind": "constant", "lr": 3e-3, "warmup": 20},
        "until": {"steps": 300},
        "show": {"every": 10},
    }
    return Recipe.from_dict(merged(values, changes))


def language(folder: Path, **changes: Any) -> Recipe:
    """Learn the alphabet, which goes round and round."""
    text = folder / "alphabet.txt"
    text.write_text("abcdefghij" * 200 + "\n")
    values: dict[str, Any] = {
        "task": "language",
        "data": {"train": [{"files": [str(text)]}], "valid_share": 0.1},
        "tokenizer": {"kind": "characters"},
        "model": MODEL,
        "batches": {"length": 16, "rows": 16},
        "schedule": {"kind": "constant", "lr": 5e-3, "warmup": 10},
        "until": {"steps": 60},
        "show": {"every": 10},
    }
    return Recipe.from_dict(merged(values, changes))


def masked(folder: Path, **changes: Any) -> Recipe:
    """Learn to fill gaps in the alphabet."""
    values = {
        "task": "masked",
        "batches": {"length": 30, "rows": 32},
        "model": {**MODEL, "n_layers": 2},
        "until": {"steps": 300},
    }
    return language(folder, **merged(values, changes))


def classification(folder: Path, **changes: Any) -> Recipe:
    """Learn which words have more of one letter than of another."""
    table = folder / "table.tsv"
    rows = [(" ".join(w), "more" if w.count("a") else "less") for w in words(300, seed=3)]
    table.write_text("".join(f"{text}\t{label}\n" for text, label in rows))
    values: dict[str, Any] = {
        "task": "classification",
        "data": {"train": [{"files": [str(table)]}], "valid_every": 10},
        "tokenizer": {"kind": "words"},
        "model": MODEL,
        "batches": {"max_tokens": 256},
        "schedule": {"kind": "constant", "lr": 5e-3, "warmup": 10},
        "until": {"steps": 100},
        "show": {"every": 10},
    }
    return Recipe.from_dict(merged(values, changes))


def merged(values: dict[str, Any], changes: dict[str, Any]) -> dict[str, Any]:
    """Tables of changes go into tables of values; everything else replaces."""
    result = dict(values)
    for name, value in changes.items():
        inner = isinstance(value, dict) and isinstance(result.get(name), dict)
        result[name] = merged(result[name], value) if inner else value
    return result


class RecordingDisplay(SilentDisplay):
    """A display that remembers what it was shown, and may do something at a step."""

    def __init__(self, at: int | None = None, do: Callable[[], Any] | None = None) -> None:
        self.said: list[str] = []
        self.totals: list[int] = []
        self.last = 0
        self.at, self.do = at, do

    def start(self, *, step: int, steps: int) -> None:
        self.last = step
        self.totals.append(steps)

    def expect(self, steps: int) -> None:
        self.totals.append(steps)

    def step(self, step: int, **values: float) -> None:
        self.last = step
        if step == self.at and self.do is not None:
            self.do()

    def announce(self, text: str) -> None:
        self.said.append(text)


def run(recipe: Recipe, out: Path, show: Any = None, resume: bool = False) -> Any:
    """Train on the CPU, without a word unless `show` is given."""
    return train(recipe, out=out, device="cpu", show=show or SilentDisplay(), resume=resume)


def with_changes(recipe: Recipe, *changes: str) -> Recipe:
    """The recipe with `section.key=value` overrides."""
    return Recipe.from_dict(as_plain(recipe), changes)


def weights(folder: Path) -> dict[str, Any]:
    """The tensors of a saved model."""
    return gf.load(folder).state_dict()
