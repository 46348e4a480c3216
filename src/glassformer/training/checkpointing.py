"""Writing and reading checkpoints: atomic, readable by any number of processes, never pickled.

    checkpoints/00000250/     model-0.safetensors  optimizer-0.safetensors  state.json  SHA256SUMS
    checkpoints/00000313-stop the same, saved between two regular ones when a run was interrupted

Each process writes the rows it owns (`-0`, `-1`, …) and their hashes; a reader loads the rows it
needs. The folder is renamed into place once everything is on disk. Older checkpoints keep only
their weights, for averaging.
"""

import json
import re
import shutil
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import save_file
from torch import Tensor, nn

from glassformer.errors import CheckpointError
from glassformer.storage import UNFINISHED, sync_to_disk
from glassformer.training.checksums import checksum_lines, read_checksums, write_checksums
from glassformer.training.parallel import Parallel
from glassformer.training.state import STATE, CheckpointState

Group = Mapping[str, Tensor]


def write_checkpoint(
    folder: Path, groups: Mapping[str, Group], state: CheckpointState, parallel: Parallel
) -> None:
    """Write groups of tensors, such as "model" and "optimizer", and the state to one folder."""
    new = folder.parent / f".{folder.name}{UNFINISHED}"
    problem = ""
    try:
        if parallel.is_main:
            shutil.rmtree(new, ignore_errors=True)
            new.mkdir(parents=True)
        parallel.barrier()
        names = [name for name in groups if _write_part(new, name, groups[name], parallel)]
        files = [f"{name}-{parallel.rank}.safetensors" for name in names]
        (new / f"hashes-{parallel.rank}").write_text(checksum_lines(new, files), "utf-8")
    except (OSError, SafetensorError, CheckpointError) as error:
        problem = str(error)
    n_failed = int(parallel.sum(torch.tensor(float(bool(problem)), device=parallel.device)))
    if parallel.is_main and not n_failed:
        try:
            _finish(new, folder, state, parallel.world_size)
        except (OSError, CheckpointError) as error:
            problem = str(error)
    if n_failed or problem:
        if parallel.is_main:
            shutil.rmtree(new, ignore_errors=True)
        raise CheckpointError(
            f"{folder} could not be written: {problem or 'another process failed'}. The "
            "checkpoints before it are intact: free some space, then continue with --resume."
        )
    parallel.barrier()


def _write_part(folder: Path, group: str, tensors: Group, parallel: Parallel) -> bool:
    owned, rows = {}, {}
    for name, tensor in tensors.items():
        local, first = _select_owned(tensor, parallel)
        if local is None:
            continue
        owned[name] = local.detach().contiguous()
        if first is not None:
            rows[name] = [first, tensor.shape[0]]
    if not owned and not parallel.is_main:
        return False
    path = folder / f"{group}-{parallel.rank}.safetensors"
    save_file(owned, path, metadata={"rows": json.dumps(rows)})
    sync_to_disk(path)
    return True


def _select_owned(tensor: Tensor, parallel: Parallel) -> tuple[Tensor | None, int | None]:
    """The rows of a tensor that this process writes, and the index of the first (None: all)."""
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


def _finish(new: Path, folder: Path, state: CheckpointState, n_writers: int) -> None:
    (new / STATE).write_text(state.as_json(), "utf-8")
    sync_to_disk(new / STATE)
    parts = [new / f"hashes-{rank}" for rank in range(n_writers)]
    lines = "".join(part.read_text("utf-8") for part in parts)
    write_checksums(new, lines + checksum_lines(new, [STATE]))
    for part in parts:
        part.unlink()
    sync_to_disk(new)
    old = folder.parent / f".{folder.name}.old{UNFINISHED}"
    if folder.exists():  # the same step, saved by a run that was stopped there
        shutil.rmtree(old, ignore_errors=True)
        folder.rename(old)
    new.rename(folder)
    sync_to_disk(folder.parent)
    shutil.rmtree(old, ignore_errors=True)


class SavedTensors:
    """The tensors of one group, however their rows are divided among the files."""

    def __init__(self, folder: Path, group: str) -> None:
        self.folder, self.group = folder, group
        self._parts: dict[str, list[tuple[int, Any]]] = {}
        pattern = re.compile(rf"{re.escape(group)}-\d+\.safetensors")
        names = [name for name in read_checksums(folder) if pattern.fullmatch(name)]
        if not names:
            raise CheckpointError(f"{folder} must hold {group}-0.safetensors; it does not.")
        for name in names:
            self._open(folder / name)

    def _open(self, path: Path) -> None:
        try:
            opened = safe_open(path, framework="pt", device="cpu").__enter__()
            rows = json.loads((opened.metadata() or {}).get("rows", "{}"))
            for name in opened.keys():  # noqa: SIM118
                self._parts.setdefault(name, []).append((int(rows.get(name, [0])[0]), opened))
        except (SafetensorError, OSError) as error:
            raise CheckpointError(f"{path} is damaged: {error}.") from None
        except (ValueError, TypeError, AttributeError, IndexError, KeyError, RecursionError):
            raise CheckpointError(f"{path} does not say which rows it holds.") from None

    @property
    def names(self) -> set[str]:
        return set(self._parts)

    def get(self, name: str) -> Tensor:
        """Read a whole tensor."""
        if name not in self._parts:
            raise CheckpointError(
                f"{self.folder} must hold {name} in {self.group}; it does not. Was it saved by "
                "another model?"
            )
        parts = sorted(self._parts[name], key=lambda part: part[0])
        try:
            tensors = [opened.get_tensor(name) for _, opened in parts]
            return tensors[0] if len(tensors) == 1 else torch.cat(tensors)
        except (SafetensorError, RuntimeError) as error:
            raise CheckpointError(f"{self.folder}: {name} is damaged: {error}.") from None

    def all(self) -> dict[str, Tensor]:
        """Read every tensor."""
        return {name: self.get(name) for name in sorted(self._parts)}


def optimizer_tensors(model: nn.Module, optimizer: torch.optim.Optimizer) -> dict[str, Tensor]:
    """The optimizer state by parameter name: "block.weight.exp_avg" and so on."""
    return {
        f"{name}.{kind}": value
        for name, parameter in model.named_parameters()
        for kind, value in optimizer.state.get(parameter, {}).items()
    }


@torch.no_grad()
def restore_weights(model: nn.Module, get: Callable[[str], Tensor]) -> None:
    """Load weights into a model by name; a sharded model takes the rows of this process."""
    for name, place in model.state_dict().items():
        place.copy_(shard_like(get(name), place, name))


def restore_optimizer(
    model: nn.Module, optimizer: torch.optim.Optimizer, saved: SavedTensors
) -> None:
    """Load the optimizer state from a checkpoint."""
    kinds = ("step", "exp_avg", "exp_avg_sq")
    for name, parameter in model.named_parameters():
        if f"{name}.momentum" in saved.names:  # Muon's only moment
            moment = saved.get(f"{name}.momentum")
            moment = shard_like(moment, parameter, f"{name}.momentum")
            optimizer.state[parameter] = {"momentum": moment}
            continue
        if f"{name}.step" not in saved.names:
            continue
        found = {kind: saved.get(f"{name}.{kind}") for kind in kinds}
        # Fused optimizers keep the step count on the device, others on the CPU.
        fused = any(group.get("fused") for group in optimizer.param_groups)
        step = found.pop("step").to(parameter.device if fused else "cpu")
        moments = {
            kind: shard_like(value, parameter, f"{name}.{kind}") for kind, value in found.items()
        }
        optimizer.state[parameter] = {"step": step, **moments}


def shard_like(whole: Tensor, place: Tensor, name: str) -> Tensor:
    """Place a tensor like another: on its device, and sharded if that one is."""
    if whole.shape != place.shape:  # copying would silently broadcast a single row
        raise CheckpointError(
            f"{name} must be of shape {tuple(place.shape)}; the checkpoint holds "
            f"{tuple(whole.shape)}. Was it saved by another model?"
        )
    whole = whole.to(place.device)
    if not hasattr(place, "to_local"):
        return whole
    from torch.distributed.tensor import distribute_tensor

    return distribute_tensor(whole, place.device_mesh, place.placements)  # type: ignore[attr-defined]
