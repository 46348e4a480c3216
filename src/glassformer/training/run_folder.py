"""The run folder: its files, whether a run may start or resume in it, and its models.

recipe.toml  essence.json  tokenizer/  tokens/  report.json       settings and data
checkpoints/  metrics.jsonl  snapshots/                           progress
best/  latest/  model/                                            models that gf.load reads
"""

import contextlib
import json
import os
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from glassformer.errors import CheckpointError, ConfigError, GlassformerError, TrainingError
from glassformer.models.checkpoints import save
from glassformer.models.checkpoints.own import read_own_config
from glassformer.models.lora import fold_adapters, list_adapters, save_lora
from glassformer.storage import UNFINISHED, atomic_file, move_aside, read_regular, sha256
from glassformer.training.checkpoints import Checkpoints
from glassformer.training.metrics import FILE as METRICS
from glassformer.training.recipe import Recipe
from glassformer.training.recipe_files import (
    ESSENCE,
    RECIPE,
    is_as_written,
    is_essence,
    read_essence,
    write_recipe,
)

try:
    import fcntl
except ImportError:  # Windows
    fcntl = None

LOCK = ".lock"
MODELS = ("best", "latest", "model")
PREPARED = (RECIPE, ESSENCE, "report.json", "tokenizer", "tokens")


class RunFolder:
    """Where a run keeps its files."""

    def __init__(self, path: Path) -> None:
        self.path = path.expanduser().absolute()
        self.checkpoints = Checkpoints(self.path / "checkpoints")
        self.snapshots = self.path / "snapshots"

    @contextlib.contextmanager
    def lock(self) -> Iterator[None]:
        """Lock the folder: two runs in it would overwrite each other's checkpoints.

        The system releases the lock when the process ends, however it ends.
        """
        if fcntl is None:  # Windows
            yield
            return
        try:
            self.path.mkdir(parents=True, exist_ok=True)
            # Not "w": opening a named pipe for writing would wait for a reader.
            lock = os.fdopen(os.open(self.path / LOCK, os.O_RDWR | os.O_CREAT, 0o644), "rb+", 0)
        except OSError as error:
            raise TrainingError(
                f"A run needs a folder it can write to; {self.path}: {error.strerror}. "
                "Choose another with --out."
            ) from None
        with lock:
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                raise TrainingError(
                    f"A run needs a folder of its own, but another process is training in "
                    f"{self.path}. Wait for it, stop it, or choose another folder with --out."
                ) from None
            yield

    def claim(self, recipe: Recipe, *, resume: bool) -> list[str]:
        """Claim the folder for a new run, or with `resume` for the run that is in it.

        Returns a sentence for each thing that had to be repaired.
        """
        # torchrun restarts a failed process with the same command line, which must then resume.
        resume = resume or int(os.environ.get("TORCHELASTIC_RESTART_COUNT", "0")) > 0
        repairs: list[str] = []
        if resume and (self._is_ours or self.has_begun):
            before, why = read_essence(self.path)
            _check_unchanged(recipe, before)
            self._remove_unfinished()
            repairs += [why] if why else []
            repairs += [why for name in MODELS if (why := self._check_model(name))]
        elif self._is_ours and self.has_begun:
            raise ConfigError(
                f"{self.path} already holds a run. Resume it with --resume, or choose another "
                "folder with --out."
            )
        elif self._is_ours:  # bad data, or a kill, ended it before its first step
            self._remove_unfinished()
            self._clear()
        elif any(p.name != LOCK and p.suffix != UNFINISHED for p in self.path.iterdir()):
            raise ConfigError(
                f"A run needs a folder of its own; {self.path} holds something else. "
                "Choose another with --out."
            )
        written = self.path / RECIPE
        if written.is_file() and not is_as_written(written):
            kept = move_aside(written, "changed")
            repairs.append(
                f"{RECIPE} has changed since the run wrote it; it is kept as {kept.name}."
            )
        write_recipe(self.path, recipe)
        return repairs

    @property
    def has_begun(self) -> bool:
        """Whether training has started here, beyond preparing the data."""
        written = os.path.lexists(self.path / METRICS)
        return written or os.path.lexists(self.checkpoints.folder)

    @property
    def _is_ours(self) -> bool:
        return is_essence(self.path / ESSENCE) or is_as_written(self.path / RECIPE)

    def _clear(self) -> None:
        for name in PREPARED:
            path = self.path / name
            shutil.rmtree(path) if path.is_dir() else path.unlink(missing_ok=True)

    def _remove_unfinished(self) -> None:
        """Remove what a killed process left half-written, and restore a model it was replacing."""
        for name in MODELS:
            for old in self.path.glob(f".{name}.old.*{UNFINISHED}"):
                if (old / name).is_dir() and not os.path.lexists(self.path / name):
                    (old / name).rename(self.path / name)
        folders = (self.path, *(self.path / name for name in ("tokenizer", "tokens", "snapshots")))
        for folder in folders:
            for left in folder.glob(f".*{UNFINISHED}"):
                shutil.rmtree(left) if left.is_dir() else left.unlink()

    def _check_model(self, name: str) -> str:
        """Move a damaged model aside; returns a sentence about it, or nothing."""
        folder = self.path / name
        if not os.path.lexists(folder):
            return ""
        why = find_model_damage(folder)
        if why is None:
            return ""
        if not (folder / "config.json").exists() and not (folder / "model.safetensors").exists():
            raise CheckpointError(
                f"{folder} is where the run saves a model, but it is not one. Move it elsewhere."
            )
        kept = move_aside(folder, "damaged")
        return f"{name}/ is damaged: {why}. It is kept as {kept.name}/ until a new one is saved."

    def save_model(self, name: str, model: Any, weights: dict[str, Tensor]) -> None:
        """Save the model with these weights as a folder that `gf.load` reads.

        LoRA adapters are merged there; those of the finished model are saved apart, too.
        """
        copy = build_like(model)
        copy.load_state_dict(fold_adapters(model, weights))
        save(copy, self.path / name, overwrite=True)
        if name == "model" and list_adapters(model):
            save_lora(model, self.path / "adapter.safetensors", weights=weights)

    def remove_latest(self) -> None:
        """Remove the weights of an interrupted run: a finished run has model/ instead."""
        shutil.rmtree(self.path / "latest", ignore_errors=True)

    def save_bad_batch(self, **values: Any) -> None:
        """Save the batch at which training diverged."""
        with atomic_file(self.path / "bad_batch.json") as new:
            text = json.dumps(values, indent=1, ensure_ascii=False)
            new.write_text(text + "\n", encoding="utf-8")


def _check_unchanged(recipe: Recipe, before: dict[str, Any]) -> None:
    now = json.loads(json.dumps(recipe.essence()))
    different = [
        f"{name} was {before.get(name)!r} and is {now.get(name)!r}"
        for name in sorted(before.keys() | now.keys())
        if before.get(name) != now.get(name)
    ]
    if different:
        raise ConfigError(
            f"A run must resume with the recipe it started with; {'; '.join(different)}. "
            "Change it back, or start a new run with --out."
        )


def find_model_damage(folder: Path) -> str | None:
    """What is wrong with a saved model; None if every file matches its hash."""
    try:
        described = json.loads(read_regular(folder / "config.json"))
        if not isinstance(described, dict) or "glassformer" not in described:
            return "config.json is not a glassformer config"
        read_own_config(folder, described)
        for name, expected in described["files"].items():
            if sha256(folder / name) != expected:
                return f"{name} does not match its hash in config.json"
    except OSError as error:
        return f"config.json cannot be read ({error.strerror})"
    except GlassformerError as error:
        return str(error).removesuffix(".")
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
        return "config.json is damaged"
    return None


def build_like(model: Any) -> Any:
    """A model of the same config on the CPU, with the tokenizer but without the weights."""
    new: Any = type(model)(model.config)
    new.tokenizer, new.special = model.tokenizer, model.special
    return new.eval()


def gather_weights(model: nn.Module) -> dict[str, Tensor]:
    """All weights on the CPU, gathered from all processes, each of which must call this."""
    whole = {}
    for name, tensor in model.state_dict().items():
        full = tensor.full_tensor() if hasattr(tensor, "full_tensor") else tensor
        whole[name] = full.detach().to("cpu", torch.float32, copy=True)
    return whole


def explain_divergence(step: int, places: list[str], folder: Path, loss: float) -> TrainingError:
    """The error for a loss that is not finite: where it happened and what to try."""
    shown = ", ".join(places[:8]) + (f" and {len(places) - 8} more" if len(places) > 8 else "")
    return TrainingError(
        f"The loss must be finite; at step {step} it is {loss}, with {shown}. The "
        f"batch is in {folder / 'bad_batch.json'}, the last good state in "
        f"{folder / 'checkpoints'}. Lower schedule.lr, raise schedule.warmup, or fix the data, "
        "and start a new run."
    )
