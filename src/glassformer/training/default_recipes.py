"""Recipes for a new user's own files: no settings, sensible sizes."""

from pathlib import Path
from typing import Any

from glassformer.text.lines import n_lines
from glassformer.training.recipe import Recipe
from glassformer.training.settings import plain

FURTHER: dict[str, Any] = {
    "schedule": {"kind": "cosine", "lr": 2e-4, "least": 1e-5, "warmup": 50},
    "until": {"steps": 1000},
}


def translation_recipe(source: str, target: str, **changes: Any) -> Recipe:
    """A translator from two files whose lines belong together."""
    n = n_lines(Path(source))
    large = n >= 20_000
    values: dict[str, Any] = {
        "task": "translation",
        "label_smoothing": 0.1,
        "data": {
            "train": [{"files": [source, target]}],
            # Enough to see whether it learns, and no more than the training can spare.
            "valid_every": 0 if n < 100 else max(20, n // 1000),
        },
        "tokenizer": {"kind": "byte-bpe", "vocab_size": 8000 if large else 2000},
        "model": {
            "preset": "laptop-translator",
            "dim": 256 if large else 128,
            "n_layers": 4 if large else 3,
            "initial": "xavier",
            "dropout": {"embedding": 0.1, "weights": 0.0, "hidden": 0.0, "residual": 0.1}
            if large
            else {"embedding": 0.2, "weights": 0.0, "hidden": 0.0, "residual": 0.2},
        },
        "batches": {"max_tokens": 4096, "max_len": 200},
        "optimizer": {"kind": "adam", "clip": 1.0},
        "schedule": {"kind": "inverse-sqrt", "lr": 0.002, "warmup": 500},
        "until": {"steps": 20_000, "epochs": 100, "patience": 8},
        "evaluate": {"every_epochs": 1},
        "save": {"every_epochs": 1, "average": 4},
        **changes,
    }
    return Recipe.from_dict(values)


def further_recipe(
    origin: str, *, source: str = "", target: str = "", text: str = "", to: str | None = None
) -> Recipe:
    """What a saved model needs to learn from a user's own files, too: small steps, and not many.

    `to` is the language of the translations, for a model that writes several.
    """
    if text:
        return language_recipe(text, model={"from": origin}, tokenizer={}, **FURTHER)
    values = plain(translation_recipe(source, target, model={"from": origin}, **FURTHER))
    values["tokenizer"] = {}
    values["data"]["train"][0]["prefix"] = f"<{to}> " if to else ""
    return Recipe.from_dict(values)


def language_recipe(text: str, **changes: Any) -> Recipe:
    """A writer of texts like the one in a file: letter by letter where it is short."""
    size = Path(text).stat().st_size if Path(text).is_file() else 0
    short = size < 5_000_000
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
        "batches": {"length": 128, "rows": 32},
        "optimizer": {"kind": "adamw", "betas": [0.9, 0.99], "weight_decay": 0.1},
        "schedule": {"kind": "cosine", "lr": 1e-3, "least": 1e-4, "warmup": 100},
        "until": {"steps": 2000},
        "evaluate": {"every_steps": 250},
        "save": {"every_steps": 250},
        **changes,
    }
    return Recipe.from_dict(values)
