"""One process or many behind one small interface; torchrun's environment says which.

    single   everything here
    ddp      every process has all weights, and gradients are summed
    fsdp     every process has rows of all weights, and fetches a block's others while it computes

Global batches are the same for every number of processes: each takes its rows, and a loss is a sum
divided by the number of all targets. Both kinds take means over processes of what we want as sums,
hence `scale`.
"""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Literal

import torch
from torch import Tensor, nn

from glassformer.errors import ConfigError
from glassformer.training.batches import Batch

Kind = Literal["ddp", "fsdp"]


class Parallel:
    """A single process, and what the other kinds have in common with it."""

    rank = 0
    world_size = 1

    def __init__(self, device: torch.device) -> None:
        self.device = device

    @property
    def is_main(self) -> bool:
        """Whether this process is the one that speaks and writes."""
        return self.rank == 0

    @property
    def scale(self) -> int:
        """What a loss is multiplied with, so that gradients add up over processes."""
        return self.world_size

    def wrap(self, module: nn.Module) -> nn.Module:
        """The module as it computes with the others."""
        return module

    def shard(self, batch: Batch) -> Batch:
        """This process's rows."""
        return batch.shard(self.rank, self.world_size)

    def sum(self, tensor: Tensor) -> Tensor:
        """The sum over all processes."""
        return tensor

    def barrier(self) -> None:
        """Wait for the others."""

    @contextmanager
    def gradient_sync(self, module: nn.Module, *, is_last: bool) -> Iterator[None]:
        """Gradients are exchanged once a step, behind its last micro-batch."""
        del module, is_last
        yield

    def close(self) -> None:
        """Leave the others."""


class Distributed(Parallel):
    """One process of those that torchrun started."""

    def __init__(self, device: torch.device) -> None:
        import torch.distributed as dist

        if device.type == "cuda":
            device = torch.device("cuda", int(os.environ.get("LOCAL_RANK", "0")))
            torch.cuda.set_device(device)
        super().__init__(device)
        self.owns_group = not dist.is_initialized()
        if self.owns_group:
            self._join("nccl" if device.type == "cuda" else "gloo")
        self.rank, self.world_size = dist.get_rank(), dist.get_world_size()

    def _join(self, backend: str) -> None:
        import torch.distributed as dist
        from torch.distributed.distributed_c10d import PrefixStore
        from torch.distributed.rendezvous import rendezvous

        # torchrun keeps its store when it starts fallen processes anew; under a name of its own
        # each try finds its own addresses there, and not those of the dead.
        store, rank, world_size = next(rendezvous("env://"))
        attempt = os.environ.get("TORCHELASTIC_RESTART_COUNT", "0")
        own = PrefixStore(f"attempt {attempt}", store)
        dist.init_process_group(backend, store=own, rank=rank, world_size=world_size)

    def sum(self, tensor: Tensor) -> Tensor:
        import torch.distributed as dist

        total = tensor.detach().clone()
        dist.all_reduce(total)
        return total

    def barrier(self) -> None:
        self.sum(torch.zeros(1, device=self.device))

    def close(self) -> None:
        import torch.distributed as dist

        if self.owns_group and dist.is_initialized():
            dist.destroy_process_group()


class DDP(Distributed):
    """All weights everywhere."""

    def wrap(self, module: nn.Module) -> nn.Module:
        from torch.nn.parallel import DistributedDataParallel

        devices = [self.device.index] if self.device.type == "cuda" else None
        return DistributedDataParallel(module, device_ids=devices)

    @contextmanager
    def gradient_sync(self, module: nn.Module, *, is_last: bool) -> Iterator[None]:
        if is_last:
            yield
        else:
            with module.no_sync():  # type: ignore[operator]
                yield


class FSDP(Distributed):
    """Rows of all weights: blocks are put together one at a time (Zhao et al. 2023)."""

    def wrap(self, module: nn.Module) -> nn.Module:
        from torch.distributed.device_mesh import init_device_mesh
        from torch.distributed.fsdp import fully_shard

        from glassformer.layers import Block

        mesh = init_device_mesh(self.device.type, (self.world_size,))
        for part in module.modules():
            if isinstance(part, Block):
                fully_shard(part, mesh=mesh)
        fully_shard(module, mesh=mesh, reshard_after_forward=False)
        return module

    @contextmanager
    def gradient_sync(self, module: nn.Module, *, is_last: bool) -> Iterator[None]:
        module.set_requires_gradient_sync(is_last)  # type: ignore[operator]
        yield


def start_parallel(kind: Kind, device: torch.device | str | None) -> Parallel:
    """What the environment asks for: `kind` where torchrun set WORLD_SIZE, else a single process.

    >>> start_parallel("ddp", "cpu").world_size
    1
    """
    if device is None:
        device = "cuda" if torch.cuda.is_available() else "cpu"
    where = resolve_device(device)
    if "WORLD_SIZE" not in os.environ:
        return Parallel(where)
    return {"ddp": DDP, "fsdp": FSDP}[kind](where)


def resolve_device(device: Any) -> torch.device:
    """A device that is there: the CPU, or a graphics card."""
    try:
        found = torch.device(device)
    except RuntimeError:
        found = None
    if found is None or (found.type == "cuda" and not torch.cuda.is_available()):
        raise ConfigError(
            f"The device must be cpu, or cuda where there is a graphics card; got {str(device)!r}."
        )
    return found
