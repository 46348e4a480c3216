"""The checkpoints of a run: which exist, which are intact, and which can be removed.

00000016                        regular: saved at an interval of the recipe
00000019-stop                   saved in between, when the run was interrupted or ended
00000024.damaged-1, notes.txt   other files are left alone
"""

import re
import shutil
from collections.abc import Collection, Iterable
from dataclasses import dataclass
from pathlib import Path

import torch

from glassformer.errors import CheckpointError
from glassformer.storage import UNFINISHED
from glassformer.training.checksums import SUMS, find_damage
from glassformer.training.parallel import Parallel
from glassformer.training.state import STATE, CheckpointState, read_state

STOP = "-stop"
_STEP = r"(\d{8}|[1-9]\d{8,14})(-stop)?"
_NAME = re.compile(_STEP)
_UNFINISHED = re.compile(rf"\.{_STEP}(\.old)?{re.escape(UNFINISHED)}")


@dataclass(frozen=True, kw_only=True, slots=True)
class Selection:
    """The checkpoint to resume from, if any, and the newer ones that are damaged."""

    path: Path | None = None
    state: CheckpointState | None = None
    damaged: tuple[tuple[Path, str], ...] = ()  # with the reason


class Checkpoints:
    """The checkpoints of a run, oldest first."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def path(self, step: int, *, regular: bool) -> Path:
        """The folder of the checkpoint of a step, whether or not it exists."""
        return self.folder / f"{step:08d}{'' if regular else STOP}"

    def all(self) -> list[Path]:
        """The checkpoints that a run can resume from."""
        return [p for p in self._entries() if (p / STATE).is_file()]

    def latest(self) -> Path | None:
        """The newest checkpoint."""
        return max(self.all(), key=_sort_key, default=None)

    def select(self, parallel: Parallel) -> Selection:
        """The newest intact checkpoint; the main process selects it for all."""
        found, problem = Selection(), ""
        if parallel.is_main:
            try:
                found = self._newest_whole()
            except CheckpointError as error:
                problem = str(error)
        path = found.path
        choice = (
            -1 if problem else 0 if path is None else 2 * parse_step(path) + _is_regular(path) + 1
        )
        mine = torch.tensor(choice if parallel.is_main else 0, device=parallel.device)
        agreed = int(parallel.sum(mine))
        if agreed < 0:
            raise CheckpointError(problem or f"No checkpoint in {self.folder} is intact.")
        if parallel.is_main or agreed == 0:
            return found
        step, regular = divmod(agreed - 1, 2)
        path = self.path(step, regular=bool(regular))
        return Selection(path=path, state=read_state(path))

    def _newest_whole(self) -> Selection:
        """The newest checkpoint that is intact, together with the older weights to be averaged.

        If those weights are damaged, an even older checkpoint is better: resuming from it writes
        them again.
        """
        damaged: list[tuple[Path, str]] = []
        second = None
        for path in reversed(self._entries()):
            try:
                state = read_verified(path)
                found = Selection(path=path, state=state, damaged=tuple(damaged))
                second = second or found
                self.check_weights(
                    step for step in state.training.regular if step != parse_step(path)
                )
                return found
            except CheckpointError as error:
                damaged.append((path, str(error).removesuffix(".")))
        if second is not None:
            return second
        if damaged:
            reasons = "; ".join(f"{path.name}: {why}" for path, why in damaged)
            raise CheckpointError(
                f"No checkpoint in {self.folder} is intact ({reasons}). Restore one from a copy, "
                "or start a new run with another --out."
            )
        return Selection()

    def check_weights(self, steps: Iterable[int]) -> None:
        """Check that the weights of these regular checkpoints match their hashes."""
        for step in steps:
            path = self.path(step, regular=True)
            why = find_damage(path, concerns=is_weights)
            if why is not None:
                raise CheckpointError(
                    f"the mean that becomes model/ needs {path.name}, which is damaged: {why}."
                )

    def prune(self, *, keep: int, averaged: Collection[int]) -> None:
        """Remove checkpoints that are no longer needed; the newest always stays."""
        kept = {self.latest(), *[p for p in self.all() if _is_regular(p)][-keep:]}
        needed = {self.path(step, regular=True) for step in averaged}
        for path in self._entries():
            if path in kept:
                continue
            if path not in needed:  # renamed first: half a checkpoint must not look like one
                old = path.with_name(f".{path.name}.old{UNFINISHED}")
                _remove(old)
                _remove(path.rename(old))
                continue
            (path / STATE).unlink(missing_ok=True)  # first: no run resumes from the rest
            for file in path.iterdir():
                if file.name != SUMS and not is_weights(file.name):
                    _remove(file)

    def remove_unfinished(self) -> None:
        """Remove what a killed process left half written or half removed."""
        if self.folder.is_dir():
            for path in self.folder.iterdir():
                if _UNFINISHED.fullmatch(path.name):
                    _remove(path)

    def _entries(self) -> list[Path]:
        try:
            there = list(self.folder.iterdir())
        except FileNotFoundError:
            return []
        except OSError as error:
            raise CheckpointError(
                f"{self.folder} must be a folder of checkpoints: {error.strerror}. Move it away, "
                "or restore it."
            ) from None
        return sorted((p for p in there if _NAME.fullmatch(p.name)), key=_sort_key)


def read_verified(path: Path) -> CheckpointState:
    """The state of a checkpoint, after verifying the hashes of all its files."""
    if not path.is_dir():
        raise CheckpointError("it is not a folder.")
    why = find_damage(path, concerns=_is_part)
    if why is not None:
        raise CheckpointError(f"{why}.")
    state = read_state(path)
    if state.training.step != parse_step(path):
        raise CheckpointError(f"{STATE} is of step {state.training.step}.")
    return state


def is_weights(name: str) -> bool:
    """Whether a file of a checkpoint holds model weights."""
    return bool(re.fullmatch(r"model-\d+\.safetensors", name))


def _is_part(name: str) -> bool:
    return name == STATE or bool(re.fullmatch(r"[a-z]+-\d+\.safetensors", name))


def parse_step(path: Path) -> int:
    """The step in a checkpoint's name."""
    return int(path.name.removesuffix(STOP))


def _is_regular(path: Path) -> bool:
    return not path.name.endswith(STOP)


def _sort_key(path: Path) -> tuple[int, bool]:
    return parse_step(path), _is_regular(path)


def _remove(path: Path) -> None:
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path, ignore_errors=True)
    else:
        path.unlink(missing_ok=True)
