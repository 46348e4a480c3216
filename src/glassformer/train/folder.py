"""The run folder: what is in it, whether a run may begin or go on there, and its models.

recipe.toml  essence.json  tokenizer/  tokens/  report.json       what was asked for
checkpoints/  metrics.jsonl  film/                                how it goes
best/  model/                                                     what gf.load reads
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

from glassformer.errors import ConfigError, TrainingError
from glassformer.models.checkpoints import save
from glassformer.storage import whole_file
from glassformer.train.config import Recipe
from glassformer.train.saving import Checkpoints

try:
    import fcntl
except ImportError:  # Windows
    fcntl = None

LOCK = ".lock"
NAMES = (
    *("recipe.toml", "essence.json", "report.json", "metrics.jsonl", "bad_batch.json"),
    *("best", "model"),
)
PREPARED = ("recipe.toml", "essence.json", "report.json", "tokenizer", "tokens")


class RunFolder:
    """The places of a run."""

    def __init__(self, path: Path) -> None:
        self.path = path.expanduser().absolute()
        self.checkpoints = Checkpoints(self.path / "checkpoints")
        self.film = self.path / "film"

    @contextlib.contextmanager
    def alone(self) -> Iterator[None]:
        """Hold the folder: two runs in one would write over each other's checkpoints.

        The system lets go of it when the process ends, however it ends.
        """
        if fcntl is None:  # Windows
            yield
            return
        try:
            self.path.mkdir(parents=True, exist_ok=True)
            lock = (self.path / LOCK).open("w")
        except OSError as error:
            raise TrainingError(
                f"A run must have a folder to write into; {self.path}: {error.strerror}. "
                "Choose another with --out."
            ) from None
        with lock:
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                raise TrainingError(
                    f"A run must have its folder to itself; another process is training in "
                    f"{self.path}. Wait for it, stop it, or choose another folder with --out."
                ) from None
            yield

    def begin(self, recipe: Recipe, *, resume: bool) -> None:
        """Claim the folder for a recipe: a new one, or with `resume` the one it was made for."""
        # torchrun starts a fallen process anew with the same words; that is to go on.
        resume = resume or int(os.environ.get("TORCHELASTIC_RESTART_COUNT", "0")) > 0
        essence = self.path / "essence.json"
        if not resume and essence.is_file() and not self._has_begun():
            self._clear()
        if essence.is_file():
            if not resume:
                raise ConfigError(
                    f"{self.path} holds a run already. Go on with --resume, or choose another "
                    "folder with --out."
                )
            self._check_same(recipe, json.loads(essence.read_text(encoding="utf-8")))
        elif not resume and any(p.name != LOCK for p in self.path.glob("*")):
            raise ConfigError(
                f"A run must have a folder of its own; {self.path} holds something else. "
                "Choose another with --out."
            )
        with whole_file(self.path / "recipe.toml") as new:
            new.write_text(recipe.as_toml(), encoding="utf-8")
        with whole_file(essence) as new:
            new.write_text(json.dumps(recipe.essence(), indent=1) + "\n", encoding="utf-8")
        for name in NAMES:  # what a killed run was about to write
            for left in self.path.glob(f".{name}.*"):
                shutil.rmtree(left) if left.is_dir() else left.unlink()

    def _has_begun(self) -> bool:
        """Whether there is more than preparations, which wrong data ended."""
        written = (self.path / "metrics.jsonl").is_file()
        return written or self.checkpoints.latest() is not None

    def _clear(self) -> None:
        for name in PREPARED:
            path = self.path / name
            shutil.rmtree(path) if path.is_dir() else path.unlink(missing_ok=True)

    def _check_same(self, recipe: Recipe, before: dict[str, Any]) -> None:
        now = json.loads(json.dumps(recipe.essence()))
        different = [
            f"{name} was {before.get(name)!r} and is {now.get(name)!r}"
            for name in sorted(before.keys() | now.keys())
            if before.get(name) != now.get(name)
        ]
        if different:
            raise ConfigError(
                f"A run is resumed with the recipe it began with; {'; '.join(different)}. "
                "Change it back, or start a new run with --out."
            )

    def save_model(self, name: str, model: Any, state: dict[str, Tensor]) -> None:
        """The model with these weights as a folder that `gf.load` reads."""
        twin = twin_of(model)
        twin.load_state_dict(state)
        save(twin, self.path / name, overwrite=True)

    def save_bad_batch(self, **values: Any) -> None:
        """What was being learned when numbers stopped being numbers."""
        with whole_file(self.path / "bad_batch.json") as new:
            text = json.dumps(values, indent=1, ensure_ascii=False)
            new.write_text(text + "\n", encoding="utf-8")


def twin_of(model: Any) -> Any:
    """A model of the same kind on the CPU, with its tokenizer."""
    twin: Any = type(model)(model.config)
    twin.tokenizer, twin.special = model.tokenizer, model.special
    return twin.eval()


def whole_state(model: nn.Module) -> dict[str, Tensor]:
    """All weights on the CPU, put together where processes share them; all must call this."""
    whole = {}
    for name, tensor in model.state_dict().items():
        full = tensor.full_tensor() if hasattr(tensor, "full_tensor") else tensor
        whole[name] = full.detach().to("cpu", torch.float32, copy=True)
    return whole


def explain_stop(step: int, places: list[str], folder: Path, loss: float) -> TrainingError:
    """Why a run cannot go on."""
    shown = ", ".join(places[:8]) + (f" and {len(places) - 8} more" if len(places) > 8 else "")
    return TrainingError(
        f"The loss must be a finite number; at step {step} it is {loss}, with {shown}. The "
        f"batch is in {folder / 'bad_batch.json'}, the last good state in "
        f"{folder / 'checkpoints'}. Lower schedule.lr, raise schedule.warmup, or mend the data, "
        "and start anew."
    )
