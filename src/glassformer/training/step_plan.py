"""The steps of a run in order: a function of the seed and of the position in the data."""

import hashlib
from collections.abc import Iterator
from dataclasses import dataclass

import torch

from glassformer.training.batches import Batch, Rows
from glassformer.training.parallel import Parallel
from glassformer.training.tasks import Task


@dataclass
class TrainingStep:
    """The batches of one optimizer step: this process's share of them."""

    epoch: int
    index: int
    n_in_epoch: int  # steps
    rows: list[Rows]  # over all processes
    batches: list[Batch]

    @property
    def is_last(self) -> bool:
        """Whether this is the last step of the epoch."""
        return self.index + 1 == self.n_in_epoch

    @property
    def n_targets(self) -> int:
        return max(1, sum(batch.n_targets for batch in self.batches))

    @property
    def n_tokens(self) -> int:
        return sum(batch.n_tokens for batch in self.batches)


def plan_steps(
    task: Task, parallel: Parallel, *, epoch: int, index: int, accumulate: int = 1
) -> Iterator[TrainingStep]:
    """Yield the steps from a position in the data on, without end."""
    n = accumulate
    while True:
        order = task.order(epoch)
        n_steps = -(-len(order) // n)
        for i in range(index, n_steps):
            rows = order[i * n : (i + 1) * n]
            batches = [
                task.lay_out(parallel.shard(task.batch(each, epoch, i * n + j)))
                for j, each in enumerate(rows)
            ]
            if parallel.device.type == "cuda":
                batches = [batch.pin() for batch in batches]
            yield TrainingStep(epoch, i, n_steps, rows, batches)
        epoch, index = epoch + 1, 0


def seed_step(seed: int, step: int, rank: int) -> None:
    """Seed every generator for one step of one process, so that no random state is saved."""
    digest = hashlib.blake2b(f"{seed} {step} {rank}".encode(), digest_size=8).digest()
    torch.manual_seed(int.from_bytes(digest) >> 1)
