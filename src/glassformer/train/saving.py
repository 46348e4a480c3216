"""Checkpoints of a run: written whole, read on any number of processes, never pickled.

    checkpoints/00000250/     model-0.safetensors  optimizer-0.safetensors  state.json
    checkpoints/00000313-stop the same, from between two regular ones: a run that was interrupted

Each process writes the rows it owns, `-0`, `-1`, …; a reader takes the rows it needs. The folder
gets its name when all is on the disk. Of older checkpoints only the weights stay, for averaging.
"""

import json
import shutil
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import save_file
from torch import Tensor, nn

from glassformer.errors import CheckpointError
from glassformer.storage import to_disk
from glassformer.train.parallel import Parallel

STATE = "state.json"
STOP = "-stop"
Group = Mapping[str, Tensor]


def write_checkpoint(
    folder: Path, groups: Mapping[str, Group], state: dict[str, Any], parallel: Parallel
) -> None:
    """Groups of tensors, such as "model" and "optimizer", and plain values, under one name."""
    new = folder.parent / f".{folder.name}.unfinished"
    problem = ""
    try:
        if parallel.is_main:
            shutil.rmtree(new, ignore_errors=True)
            new.mkdir(parents=True)
        parallel.barrier()
        for name, group in groups.items():
            _write_part(new / f"{name}-{parallel.rank}.safetensors", group, parallel)
    except (OSError, SafetensorError) as error:
        problem = str(error)
    n_failed = int(parallel.sum(torch.tensor(float(bool(problem)), device=parallel.device)))
    if parallel.is_main and not n_failed:
        try:
            _finish(new, folder, state)
        except OSError as error:
            problem = str(error)
    if n_failed or problem:
        if parallel.is_main:
            shutil.rmtree(new, ignore_errors=True)
        raise CheckpointError(
            f"{folder} could not be written: {problem or 'another process failed'}. The "
            "checkpoints before it are whole: make room, then go on with --resume."
        )
    parallel.barrier()


def _write_part(path: Path, group: Group, parallel: Parallel) -> None:
    owned, rows = {}, {}
    for name, tensor in group.items():
        local, first = _owned(tensor, parallel)
        if local is None:
            continue
        owned[name] = local.detach().contiguous()
        if first is not None:
            rows[name] = [first, tensor.shape[0]]
    if owned or parallel.is_main:
        save_file(owned, path, metadata={"rows": json.dumps(rows)})
        to_disk(path)


def _owned(tensor: Tensor, parallel: Parallel) -> tuple[Tensor | None, int | None]:
    """What this process keeps of a tensor, and the first of its rows if it is not all of them."""
    if not hasattr(tensor, "to_local"):
        return (tensor if parallel.is_main else None), None
    from torch.distributed.tensor._utils import compute_local_shape_and_global_offset

    shape, offset = compute_local_shape_and_global_offset(
        tensor.shape,
        tensor.device_mesh,  # type: ignore[attr-defined]
        tensor.placements,  # type: ignore[attr-defined]
    )
    local = tensor.to_local()  # type: ignore[attr-defined]
    return (local, int(offset[0])) if len(shape) and shape[0] else (None, None)


def _finish(new: Path, folder: Path, state: dict[str, Any]) -> None:
    text = json.dumps(state, indent=1, ensure_ascii=False)
    (new / STATE).write_text(text + "\n", encoding="utf-8")
    to_disk(new / STATE)
    to_disk(new)
    if folder.exists():  # the same step, from a run that was stopped there
        shutil.rmtree(folder)
    new.rename(folder)
    to_disk(folder.parent)


class SavedTensors:
    """The tensors of one group, whole or some rows of them, whoever wrote which rows."""

    def __init__(self, folder: Path, group: str) -> None:
        self.folder, self.group = folder, group
        self._parts: dict[str, list[tuple[int, Any]]] = {}
        paths = sorted(folder.glob(f"{group}-*.safetensors"))
        if not paths:
            raise CheckpointError(f"{folder} must hold {group}-0.safetensors; it does not.")
        for path in paths:
            try:
                opened = safe_open(path, framework="pt", device="cpu").__enter__()
            except (SafetensorError, OSError) as error:
                raise CheckpointError(f"{path} is damaged: {error}.") from None
            rows = json.loads((opened.metadata() or {}).get("rows", "{}"))
            for name in opened.keys():  # noqa: SIM118
                first = rows.get(name, [0])[0]
                self._parts.setdefault(name, []).append((first, opened))

    @property
    def names(self) -> set[str]:
        return set(self._parts)

    def get(self, name: str) -> Tensor:
        """A whole tensor."""
        if name not in self._parts:
            raise CheckpointError(
                f"{self.folder} must hold {name} in {self.group}; it does not. Was it saved by "
                "another model?"
            )
        parts = sorted(self._parts[name], key=lambda part: part[0])
        tensors = [opened.get_tensor(name) for _, opened in parts]
        return tensors[0] if len(tensors) == 1 else torch.cat(tensors)

    def all(self) -> dict[str, Tensor]:
        """Every tensor, whole."""
        return {name: self.get(name) for name in sorted(self._parts)}


class Checkpoints:
    """The checkpoints of a run, oldest first."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def path(self, step: int, *, regular: bool) -> Path:
        """Where the checkpoint of a step is, or will be."""
        return self.folder / f"{step:08d}{'' if regular else STOP}"

    def all(self) -> list[Path]:
        """What can be resumed from."""
        return [p for p in self._folders() if (p / STATE).is_file()]

    def latest(self) -> Path | None:
        """The last one."""
        return max(self.all(), key=_step, default=None)

    def regular(self, n: int) -> list[Path]:
        """The last n that were due: those that a run without interruption has, too."""
        return [p for p in self._folders() if not p.name.endswith(STOP)][-n:]

    def tidy(self, *, keep: int, average: int) -> None:
        """Remove what is not needed any more; the latest always stays."""
        latest = self.latest()
        needed = set(self.regular(average)) if average > 1 else set()
        kept = {latest, *[p for p in self.all() if not p.name.endswith(STOP)][-keep:]}
        for path in self._folders():
            if path in kept:
                continue
            (path / STATE).unlink(missing_ok=True)  # first: nobody resumes from the rest
            if path not in needed:
                shutil.rmtree(path, ignore_errors=True)
                continue
            for file in path.iterdir():
                if not file.name.startswith("model-"):
                    file.unlink()

    def forget_after(self, step: int) -> None:
        """Remove what a killed run left unfinished, and weights from beyond a step."""
        if not self.folder.is_dir():
            return
        for path in self.folder.glob(".*.unfinished"):
            shutil.rmtree(path, ignore_errors=True)
        for path in self._folders():
            if _step(path) > step:
                shutil.rmtree(path, ignore_errors=True)

    def _folders(self) -> list[Path]:
        if not self.folder.is_dir():
            return []
        return sorted((p for p in self.folder.iterdir() if p.name[:8].isdigit()), key=_step)


def _step(folder: Path) -> int:
    return int(folder.name[:8])


def optimizer_tensors(model: nn.Module, optimizer: torch.optim.Optimizer) -> dict[str, Tensor]:
    """The optimiser's memory by the names of parameters, "block.weight.exp_avg" and so on."""
    return {
        f"{name}.{kind}": value
        for name, parameter in model.named_parameters()
        for kind, value in optimizer.state.get(parameter, {}).items()
    }


@torch.no_grad()
def restore_weights(model: nn.Module, get: Callable[[str], Tensor]) -> None:
    """Weights by name into a model, whichever rows this process has of them."""
    for name, place in model.state_dict().items():
        place.copy_(like(get(name), place))


def restore_optimizer(
    model: nn.Module, optimizer: torch.optim.Optimizer, saved: SavedTensors
) -> None:
    """The optimiser's memory from a checkpoint."""
    kinds = ("step", "exp_avg", "exp_avg_sq")
    for name, parameter in model.named_parameters():
        if f"{name}.step" not in saved.names:
            continue
        found = {kind: saved.get(f"{name}.{kind}") for kind in kinds}
        # Fused kernels count steps on the device, the others on the CPU.
        fused = any(group.get("fused") for group in optimizer.param_groups)
        step = found.pop("step").to(parameter.device if fused else "cpu")
        moments = {kind: like(value, parameter) for kind, value in found.items()}
        optimizer.state[parameter] = {"step": step, **moments}


def like(whole: Tensor, place: Tensor) -> Tensor:
    """A whole tensor where another is: on its device, or its rows of it in this process."""
    whole = whole.to(place.device)
    if not hasattr(place, "to_local"):
        return whole
    from torch.distributed.tensor import distribute_tensor

    return distribute_tensor(whole, place.device_mesh, place.placements)  # type: ignore[attr-defined]
