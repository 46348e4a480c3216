"""One process or many behind one small interface, chosen by torchrun's environment.

    single   one process does everything
    ddp      every process holds all weights; gradients are summed
    fsdp     every process holds some rows of each weight and gathers a block's other rows to use it

Global batches do not depend on the number of processes: each process takes its rows, and a loss is
a sum divided by the number of all targets. DDP and FSDP average gradients over processes where we
need sums, hence `scale`.
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
    """A single process; also the base of the other kinds."""

    rank = 0
    world_size = 1

    def __init__(self, device: torch.device) -> None:
        self.device = device

    @property
    def is_main(self) -> bool:
        """Whether this is the process that logs and writes files."""
        return self.rank == 0

    @property
    def scale(self) -> int:
        """The factor for losses that turns averaged gradients into sums over processes."""
        return self.world_size

    def wrap(self, module: nn.Module) -> nn.Module:
        """Wrap a module for parallel training."""
        return module

    def shard(self, batch: Batch) -> Batch:
        """The rows of a batch for this process."""
        return batch.shard(self.rank, self.world_size)

    def sum(self, tensor: Tensor) -> Tensor:
        """The sum over all processes."""
        return tensor

    def barrier(self) -> None:
        """Wait for the other processes."""

    @contextmanager
    def gradient_sync(self, module: nn.Module, *, is_last: bool) -> Iterator[None]:
        """Exchange gradients once per step, after its last micro-batch."""
        del module, is_last
        yield

    def close(self) -> None:
        """Leave the process group."""


class Distributed(Parallel):
    """One of the processes that torchrun started."""

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

        # torchrun keeps its store when it restarts failed processes. A prefix per attempt keeps
        # the addresses of dead processes out of the new group.
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
    """Every process holds all weights."""

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
    """Every process holds some rows; blocks are gathered one at a time (Zhao et al. 2023)."""

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
    """Start `kind` if torchrun set WORLD_SIZE, a single process otherwise.

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
    """A device that exists: the CPU or a GPU."""
    try:
        found = torch.device(device)
    except RuntimeError:
        found = None
    if found is None or (found.type == "cuda" and not torch.cuda.is_available()):
        raise ConfigError(
            f"The device must be cpu, or cuda on a machine with a GPU; got {str(device)!r}."
        )
    return found
