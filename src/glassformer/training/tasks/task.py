"""The interface of a task: the order of batches, the batches, and logits for their targets."""

from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from glassformer.models import watch_routing
from glassformer.models.output_heads import PendingLogits
from glassformer.text.store import TokenTable
from glassformer.training.batches import Batch, Ragged, Rows, padding_share
from glassformer.training.chunked_loss import linear_cross_entropy_sum
from glassformer.training.data import TrainingData
from glassformer.training.loss import (
    IGNORED,
    count_hits,
    cross_entropy_sum,
    disagreement_sum,
)
from glassformer.training.parallel import Parallel
from glassformer.training.recipe import Recipe


class Task(ABC):
    """A recipe's data as batches. Each has `targets`; its other tensors depend on the task."""

    fixed_shape = False  # whether all batches have one shape

    def __init__(self, recipe: Recipe, data: TrainingData) -> None:
        self.recipe, self.data = recipe, data
        self.tokenizer, self.special = data.tokenizer, data.special
        self.pad = 0 if data.special.pad is None else data.special.pad

    def fix_shape(self) -> bool:
        """Give all batches one shape from now on, where the task can; whether they have one."""
        return self.fixed_shape

    @abstractmethod
    def order(self, epoch: int) -> list[Rows]:
        """The batches of an epoch, each as the rows it holds."""

    @abstractmethod
    def batch(self, rows: Rows, *where: int) -> Batch:
        """Rows as tensors; any randomness depends only on the seed and `where`."""

    def lay_out(self, batch: Batch) -> Batch:
        """This process's share of a batch, as the model computes it in training."""
        return batch

    @abstractmethod
    def valid_batches(self) -> Iterator[Batch]:
        """The validation batches, the same each time; none without validation data."""

    @abstractmethod
    def logits(self, model: Any, tensors: Mapping[str, Tensor]) -> Tensor:
        """The model's logits, one row per target."""

    def pending_logits(self, model: Any, tensors: Mapping[str, Tensor]) -> PendingLogits | None:
        """The logits before their last product; None: this model has no such form of them."""
        del model, tensors
        return None

    def describe(self) -> str:
        """The amount of data, in one line."""
        order = self.order(0)
        text = f"{len(order):,} batch{'es' * (len(order) != 1)} per epoch"
        lengths = self.lengths()
        return text if lengths is None else f"{text}, {padding_share(lengths, order):.1%} padding"

    def lengths(self) -> np.ndarray | None:
        """The number of tokens of each example, for tasks with padding."""
        return None

    @abstractmethod
    def locate(self, rows: Rows) -> list[str]:
        """The origin of rows in the data, for error messages."""

    def extra_scores(self, model: Any) -> dict[str, float]:
        """Scores beyond loss and accuracy."""
        del model
        return {}

    def sample(self, model: Any, text: str) -> str:
        """The model's output for a text."""
        del model, text
        return ""

    def run_once(self, model: Any, text: str) -> None:
        """Run a text through the model once, to be traced."""
        self.sample(model, text)


class Objective(nn.Module):
    """A model and its task as one module, which is compiled and wrapped for parallel training.

    Returns the sum of losses in training mode; in evaluation mode the sum without label smoothing
    and the number of hits. With `consistency` α, each batch passes twice with different dropout:

        ½ (CE₁ + CE₂ + α · ½ (KL(p₁‖p₂) + KL(p₂‖p₁)))        R-Drop (Liang et al. 2021)

    A mixture of experts adds its load-balancing loss, for each target alike; padding counts too.
    """

    def __init__(
        self,
        model: nn.Module,
        task: Task,
        *,
        smoothing: float = 0.0,
        consistency: float = 0.0,
        float8: bool = False,
    ) -> None:
        super().__init__()
        self.model, self.task = model, task
        self.smoothing, self.consistency, self.float8 = smoothing, consistency, float8
        experts = getattr(getattr(model, "config", None), "experts", None)
        self.balance = 0.0 if experts is None else experts.balance

    def forward(self, tensors: dict[str, Tensor]) -> Tensor:
        if not self.training or not self.balance:
            return self._sum_losses(tensors)
        with watch_routing(self.model) as routing:
            loss = self._sum_losses(tensors)
        n_targets = (tensors["targets"] != IGNORED).sum()
        return loss + self.balance * n_targets * routing.balance_loss()

    def _sum_losses(self, tensors: dict[str, Tensor]) -> Tensor:
        if not self.training:
            logits = self.task.logits(self.model, tensors)
            loss = cross_entropy_sum(logits, tensors["targets"])
            return torch.stack([loss, count_hits(logits, tensors["targets"]).to(loss.dtype)])
        if not self.consistency:
            pending = self.task.pending_logits(self.model, tensors)
            if pending is not None:
                hidden, weight, bias = pending
                return linear_cross_entropy_sum(
                    hidden,
                    weight,
                    tensors["targets"],
                    bias=bias,
                    smoothing=self.smoothing,
                    float8=self.float8,
                )
            logits = self.task.logits(self.model, tensors)
            return cross_entropy_sum(logits, tensors["targets"], smoothing=self.smoothing)
        twice = {name: torch.cat([each, each]) for name, each in tensors.items()}
        logits = self.task.logits(self.model, twice)
        loss = cross_entropy_sum(logits, twice["targets"], smoothing=self.smoothing)
        one, two = logits.chunk(2)
        gap = disagreement_sum(one, two, tensors["targets"])
        return 0.5 * (loss + self.consistency * gap)


@torch.no_grad()
def validate(objective: nn.Module, task: Task, parallel: Parallel) -> dict[str, float]:
    """Loss, perplexity and accuracy per target on the validation data."""
    objective.eval()
    sums, n = torch.zeros(2, dtype=torch.float32, device=parallel.device), 0
    for batch in task.valid_batches():
        n += batch.n_targets
        mine = parallel.shard(batch).to(parallel.device)
        sums += objective(mine.tensors)
    objective.train()
    if not n:
        return {}
    loss, hits = (float(each) / n for each in parallel.sum(sums))
    return {"loss": loss, "perplexity": float(np.exp(min(loss, 80.0))), "accuracy": hits}


def as_ragged(table: TokenTable, column: str) -> Ragged:
    """A column of a token table as ragged sequences."""
    store = table.columns[column]
    return Ragged(store.tokens, store.lengths)


def locate_lines(table: TokenTable, rows: Rows) -> list[str]:
    """The file and line of each row."""
    files, places = table.notes["files"], table.notes["places"]
    return [f"{files[file]} line {line}" for file, line in (places[int(i)] for i in rows)]
