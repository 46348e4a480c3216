"""Masked language modeling: predict hidden tokens of a window from all others.

Of the tokens to predict, 80 % are replaced by the mask token and 10 % by a random token; 10 % stay
unchanged, so that the model cannot trust what it sees (Devlin et al. 2019, §3.1). Logits are
computed only at the positions to predict.
"""

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
import torch
from torch import Tensor

from glassformer.errors import ConfigError
from glassformer.functional import Documents
from glassformer.generation import fill
from glassformer.models.output_heads import PendingLogits
from glassformer.training.batches import Batch, Rows, as_tensors, content_rng
from glassformer.training.data import TrainingData
from glassformer.training.loss import IGNORED
from glassformer.training.recipe import Recipe
from glassformer.training.tasks.task import Task
from glassformer.training.tasks.windows import Windows


class MaskedModeling(Task):
    """Masked windows of a text; with `batches.documents`, attention stays within a document."""

    fixed_shape = True

    def __init__(self, recipe: Recipe, data: TrainingData) -> None:
        super().__init__(recipe, data)
        if data.special.mask is None:
            raise ConfigError(
                "Masked language modeling needs a mask token; the tokenizer has none. "
                "Train a new tokenizer, or choose another task."
            )
        self.mask = data.special.mask
        valid = None if data.valid is None else data.valid.columns["tokens"]
        self.text, self.valid = Windows.split(
            data.train.columns["tokens"], valid, recipe.data, recipe.batches, recipe.seed
        )
        special = {data.special.pad, data.special.begin, data.special.mask, *data.special.end}
        special |= set(data.special.never)
        self.is_special = np.zeros(data.tokenizer.vocab_size, dtype=bool)
        self.is_special[[i for i in special if i is not None]] = True
        self.ordinary = np.flatnonzero(~self.is_special)

    def order(self, epoch: int) -> list[Rows]:
        return self.text.order(epoch)

    def batch(self, rows: Rows, *where: int) -> Batch:
        return self._batch(self.text, rows, content_rng(self.recipe.seed, *where))

    def valid_batches(self) -> Iterator[Batch]:
        if self.valid is not None:
            for i, rows in enumerate(self.valid.fixed_batches(self.recipe.evaluate.n_batches)):
                yield self._batch(self.valid, rows, content_rng(0, i))

    def _batch(self, text: Windows, starts: Rows, rng: np.random.Generator) -> Batch:
        tokens = text.cut(starts)
        hidden, gaps, targets = self.hide(tokens, rng)
        arrays = {"tokens": hidden, "gaps": gaps, "targets": targets}
        if self.recipe.batches.documents:
            arrays["documents"], arrays["positions"] = text.documents(starts)
        return Batch(as_tensors(**arrays), int((targets != IGNORED).sum()), tokens.size)

    def hide(
        self, tokens: np.ndarray, rng: np.random.Generator
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Masked tokens, the masked positions and their targets; rows are padded to one length."""
        n = max(1, round(tokens.shape[1] * self.recipe.batches.masked))
        chance = rng.random(tokens.shape)
        chance[self.is_special[tokens]] = 2.0  # chosen only after all ordinary tokens
        gaps = np.sort(np.argpartition(chance, n - 1, axis=1)[:, :n], axis=1)
        found = np.take_along_axis(tokens, gaps, axis=1)
        targets = np.where(self.is_special[found], IGNORED, found)
        kind = rng.random(gaps.shape)
        shown = np.where(kind < 0.8, self.mask, found)
        others = rng.choice(self.ordinary, gaps.shape)
        shown = np.where((kind >= 0.8) & (kind < 0.9), others, shown)
        shown = np.where(self.is_special[found], found, shown)
        hidden = tokens.copy()
        np.put_along_axis(hidden, gaps, shown, axis=1)
        return hidden, gaps, targets

    def logits(self, model: Any, tensors: Mapping[str, Tensor]) -> Tensor:
        return model.fill(_hidden_in_gaps(model, tensors))  # (B, gaps, V)

    def pending_logits(self, model: Any, tensors: Mapping[str, Tensor]) -> PendingLogits:
        hidden = _hidden_in_gaps(model, tensors)
        return model.head.prepare(hidden, model.embedding.weight)

    def sample(self, model: Any, text: str) -> str:
        filled = text
        for guesses in fill(model, text, k=1):
            filled = filled.replace("[MASK]", guesses[0].piece.strip(), 1)
        return filled

    def locate(self, rows: Rows) -> list[str]:
        length = self.recipe.batches.length
        return [f"tokens {int(start)} to {int(start) + length}" for start in rows]


def _hidden_in_gaps(model: Any, tensors: Mapping[str, Tensor]) -> Tensor:
    """The encoder's vectors at the positions to predict."""
    options = {}
    if "documents" in tensors:
        mask = Documents(tensors["documents"])
        options = {"mask": mask, "positions": tensors["positions"]}
    hidden = model(tensors["tokens"], **options)
    where = tensors["gaps"][..., None].expand(-1, -1, hidden.shape[-1])
    return torch.gather(hidden, 1, where)  # (B, L, C) → (B, gaps, C)
