"""The recipe of a run in its folder.

    recipe.toml    the recipe; its last line is a comment with the hash of the others
    essence.json   the settings that determine the weights, with their hash

essence.json is derived from recipe.toml; a recipe given on resuming is compared with it.
"""

import hashlib
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from glassformer.errors import CheckpointError, ConfigError
from glassformer.storage import atomic_file, read_regular, special_kind
from glassformer.training.recipe import Recipe

RECIPE, ESSENCE = "recipe.toml", "essence.json"
_COMMENT = "# SHA-256 of the lines above, which --resume checks: "


def write_recipe(folder: Path, recipe: Recipe) -> None:
    """Write both files atomically."""
    text = recipe.as_toml()
    with atomic_file(folder / RECIPE) as new:
        new.write_text(f"{text}{_COMMENT}{_digest(text)}\n", encoding="utf-8")
    plain = recipe.essence()
    described = {"essence": plain, "sha256": _digest(_canonical(plain))}
    with atomic_file(folder / ESSENCE) as new:
        new.write_text(json.dumps(described, indent=1) + "\n", encoding="utf-8")


def read_recipe(folder: Path, overrides: Sequence[str] = ()) -> Recipe:
    """Read the recipe of a run; it must not have changed since the run wrote it."""
    path = folder / RECIPE
    if not is_as_written(path):
        what = "has changed since the run wrote it" if path.is_file() else "is missing"
        raise ConfigError(
            f"{path} {what}. Restore it, or name the recipe: glassformer train RECIPE.toml "
            f"--resume --out {folder}. Override settings with --set."
        )
    return Recipe.from_toml(path, overrides)


def read_essence(folder: Path) -> tuple[dict[str, Any], str]:
    """Read the settings a run started with; the second value says what had to be repaired."""
    try:
        return _read_essence(folder / ESSENCE), ""
    except CheckpointError as error:
        why = str(error).removesuffix(".")
    if not is_as_written(folder / RECIPE):
        raise CheckpointError(
            f"{why}, and {RECIPE} is not as the run wrote it. Restore one of them, or start a new "
            "run with another --out."
        )
    rebuilt = Recipe.from_toml(folder / RECIPE).essence()
    return _through_json(rebuilt), f"{why}; it was rebuilt from {RECIPE}."


def is_as_written(path: Path) -> bool:
    """Whether a recipe.toml is one that `write_recipe` wrote."""
    try:
        text = read_regular(path).decode("utf-8") if path.is_file() else ""
    except (OSError, UnicodeDecodeError):
        return False
    above, comment, digest = text.rpartition(_COMMENT)
    return bool(comment) and digest == _digest(above) + "\n"


def is_essence(path: Path) -> bool:
    """Whether an essence.json is one that `write_recipe` wrote."""
    try:
        return bool(_read_essence(path))
    except CheckpointError:
        return False


def _read_essence(path: Path) -> dict[str, Any]:
    kind = special_kind(path)
    if kind is not None or not path.exists():
        raise CheckpointError(f"{path} is {kind or 'missing'}.")
    try:
        described = json.loads(read_regular(path))
    except OSError as error:
        raise CheckpointError(f"{path} cannot be read: {error.strerror}.") from None
    except (ValueError, RecursionError):
        raise CheckpointError(f"{path} is damaged.") from None
    plain = described.get("essence") if isinstance(described, dict) else None
    if not isinstance(plain, dict) or described.get("sha256") != _digest(_canonical(plain)):
        raise CheckpointError(f"{path} is damaged.")
    return plain


def _through_json(plain: dict[str, Any]) -> dict[str, Any]:
    return json.loads(json.dumps(plain))


def _canonical(plain: dict[str, Any]) -> str:
    return json.dumps(plain, sort_keys=True)


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()
