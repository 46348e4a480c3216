"""The steps of a run, one after another: a function of the seed and of the place in the data."""

import hashlib
from collections.abc import Iterator
from dataclasses import dataclass

import torch

from glassformer.training.batches import Batch, Rows
from glassformer.training.parallel import Parallel
from glassformer.training.tasks import Task


@dataclass
class Work:
    """What one step does: this process's share of a few batches."""

    epoch: int
    index: int
    is_last: bool  # of the epoch
    rows: list[Rows]  # of all processes
    batches: list[Batch]

    @property
    def n_targets(self) -> int:
        return max(1, sum(batch.n_targets for batch in self.batches))

    @property
    def n_tokens(self) -> int:
        return sum(batch.n_tokens for batch in self.batches)


def steps_from(
    task: Task, parallel: Parallel, *, epoch: int, index: int, accumulate: int = 1
) -> Iterator[Work]:
    """Steps from a place on, without end."""
    n = accumulate
    while True:
        order = task.order(epoch)
        n_steps = -(-len(order) // n)
        for i in range(index, n_steps):
            rows = order[i * n : (i + 1) * n]
            batches = [
                parallel.shard(task.batch(each, epoch, i * n + j)) for j, each in enumerate(rows)
            ]
            if parallel.device.type == "cuda":
                batches = [batch.pinned() for batch in batches]
            yield Work(epoch, i, i + 1 == n_steps, rows, batches)
        epoch, index = epoch + 1, 0


def seed_step(seed: int, step: int, rank: int) -> None:
    """Seed every generator for one step of one process: nothing random need be saved."""
    digest = hashlib.blake2b(f"{seed} {step} {rank}".encode(), digest_size=8).digest()
    torch.manual_seed(int.from_bytes(digest) >> 1)
