"""Classification: predict the class of a text from the first token's hidden state."""

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
import torch
from torch import Tensor

from glassformer.functional import Padding
from glassformer.text.store import TokenTable
from glassformer.training.batches import Batch, Rows, as_tensors, batch_by_tokens
from glassformer.training.data import TrainingData
from glassformer.training.recipe import Recipe
from glassformer.training.tasks.task import Task, as_ragged, locate_lines


class Classification(Task):
    """Texts with one class each, batched by number of tokens."""

    def __init__(self, recipe: Recipe, data: TrainingData) -> None:
        super().__init__(recipe, data)
        self.numbers = {name: i for i, name in enumerate(data.classes)}
        self.labels = self._labels(data.train)
        self.texts = as_ragged(data.train, "tokens")

    def _labels(self, table: TokenTable) -> np.ndarray:
        found = [self.numbers.get(label, -1) for label in table.notes["labels"]]
        return np.array(found, dtype=np.int64)

    def lengths(self) -> np.ndarray:
        return self.texts.lengths

    def order(self, epoch: int) -> list[Rows]:
        b = self.recipe.batches
        return batch_by_tokens(
            self.texts.lengths,
            max_tokens=b.max_tokens,
            seed=self.recipe.seed,
            epoch=epoch,
            pool=b.pool,
            max_rows=b.max_rows,
        )

    def batch(self, rows: Rows, *where: int) -> Batch:
        del where  # nothing is random here
        return self._batch(self.data.train, self.labels, rows)

    def valid_batches(self) -> Iterator[Batch]:
        table = self.data.valid
        if table is None:
            return
        labels = self._labels(table)
        lengths = table.columns["tokens"].lengths
        most = max(self.recipe.batches.max_tokens, int(lengths.max()))
        for rows in batch_by_tokens(lengths, max_tokens=most):
            yield self._batch(table, labels, rows)

    def _batch(self, table: TokenTable, labels: np.ndarray, rows: Rows) -> Batch:
        texts = self.texts if table is self.data.train else as_ragged(table, "tokens")
        to = self.recipe.batches.round_to
        tokens, lengths = texts.pad_rows(rows, pad=self.pad, round_to=to)
        tensors = as_tensors(tokens=tokens, lengths=lengths, targets=labels[rows])
        return Batch(tensors, len(rows), int(lengths.sum()))

    def logits(self, model: Any, tensors: Mapping[str, Tensor]) -> Tensor:
        hidden = model(tensors["tokens"], mask=Padding(tensors["lengths"]))
        return model.classify(hidden)

    @torch.no_grad()
    def sample(self, model: Any, text: str) -> str:
        device = model.embedding.weight.device
        tokens = torch.tensor([self.tokenizer.encode(text)], device=device)
        best = int(model.classify(model(tokens)).argmax(-1))
        return model.config.output.classes[best]

    def locate(self, rows: Rows) -> list[str]:
        return locate_lines(self.data.train, rows)
