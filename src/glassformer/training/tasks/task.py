"""What every task has: an order of batches, batches, and logits for their targets."""

from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from glassformer.text.store import TokenTable
from glassformer.training.batches import Batch, Ragged, Rows, padding_share
from glassformer.training.data import TrainingData
from glassformer.training.loss import count_hits, cross_entropy_sum, disagreement_sum
from glassformer.training.parallel import Parallel
from glassformer.training.recipe import Recipe


class Task(ABC):
    """A recipe's data as batches; every batch has `targets`, the others are the task's own."""

    def __init__(self, recipe: Recipe, data: TrainingData) -> None:
        self.recipe, self.data = recipe, data
        self.tokenizer, self.special = data.tokenizer, data.special
        self.pad = 0 if data.special.pad is None else data.special.pad

    @abstractmethod
    def order(self, epoch: int) -> list[Rows]:
        """The batches of an epoch, as the rows that are in them."""

    @abstractmethod
    def batch(self, rows: Rows, *where: int) -> Batch:
        """Rows as tensors; what is random in them is a function of the seed and of `where`."""

    @abstractmethod
    def valid_batches(self) -> Iterator[Batch]:
        """What to validate with, always the same; nothing where there is nothing."""

    @abstractmethod
    def logits(self, model: Any, tensors: Mapping[str, Tensor]) -> Tensor:
        """The model's scores, a row for each target."""

    def describe(self) -> str:
        """The amount of data, in a line."""
        order = self.order(0)
        text = f"{len(order):,} batch{'es' * (len(order) != 1)} per epoch"
        lengths = self.lengths()
        return text if lengths is None else f"{text}, {padding_share(lengths, order):.1%} padding"

    def lengths(self) -> np.ndarray | None:
        """How many tokens each example has, where these are padded."""
        return None

    @abstractmethod
    def locate(self, rows: Rows) -> list[str]:
        """Where in the data rows come from, to be read by a person."""

    def extra_scores(self, model: Any) -> dict[str, float]:
        """Scores beyond loss and accuracy."""
        del model
        return {}

    def sample(self, model: Any, text: str) -> str:
        """What the model makes of a text."""
        del model, text
        return ""

    def run_once(self, model: Any, text: str) -> None:
        """Run a text through the model, for whoever observes it."""
        self.sample(model, text)


class Objective(nn.Module):
    """A model and its task as one module, from tensors to a sum: what is compiled and wrapped.

    While training the sum of losses; otherwise that without smoothing, and the number of hits.
    With `consistency` α a batch is seen twice, each time under other dropout:

        ½ (CE₁ + CE₂ + α · ½ (KL(p₁‖p₂) + KL(p₂‖p₁)))        R-Drop (Liang et al. 2021)
    """

    def __init__(
        self, model: nn.Module, task: Task, *, smoothing: float = 0.0, consistency: float = 0.0
    ) -> None:
        super().__init__()
        self.model, self.task = model, task
        self.smoothing, self.consistency = smoothing, consistency

    def forward(self, tensors: dict[str, Tensor]) -> Tensor:
        if not self.training:
            logits = self.task.logits(self.model, tensors)
            loss = cross_entropy_sum(logits, tensors["targets"])
            return torch.stack([loss, count_hits(logits, tensors["targets"]).to(loss.dtype)])
        if not self.consistency:
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
    """Loss, perplexity and accuracy per target of the validation data."""
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


def ragged(table: TokenTable, column: str) -> Ragged:
    """A column of a token table, ready to be padded."""
    store = table.columns[column]
    return Ragged(store.tokens, store.lengths)


def locate_lines(table: TokenTable, rows: Rows) -> list[str]:
    """Files and lines of rows."""
    files, places = table.notes["files"], table.notes["places"]
    return [f"{files[file]} line {line}" for file, line in (places[int(i)] for i in rows)]
