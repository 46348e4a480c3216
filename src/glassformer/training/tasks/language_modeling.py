"""Language modeling: predict each token of a window from those before it."""

from collections.abc import Iterator, Mapping
from typing import Any

from torch import Tensor

from glassformer.functional import Documents
from glassformer.generation import generate
from glassformer.models.output_heads import PendingLogits
from glassformer.models.recurrent import LSTMLanguageModel
from glassformer.training.batches import Batch, Rows, as_tensors
from glassformer.training.data import TrainingData
from glassformer.training.loss import IGNORED
from glassformer.training.recipe import Recipe
from glassformer.training.tasks.task import Task
from glassformer.training.tasks.windows import Windows


class LanguageModeling(Task):
    """Windows of a long text; with `batches.documents`, attention stays within a document."""

    fixed_shape = True

    def __init__(self, recipe: Recipe, data: TrainingData) -> None:
        super().__init__(recipe, data)
        valid = None if data.valid is None else data.valid.columns["tokens"]
        self.text, self.valid = Windows.split(
            data.train.columns["tokens"], valid, recipe.data, recipe.batches, recipe.seed
        )

    def order(self, epoch: int) -> list[Rows]:
        return self.text.order(epoch)

    def batch(self, rows: Rows, *where: int) -> Batch:
        del where  # nothing is random here
        return self._batch(self.text, rows)

    def valid_batches(self) -> Iterator[Batch]:
        if self.valid is not None:
            for rows in self.valid.fixed_batches(self.recipe.evaluate.n_batches):
                yield self._batch(self.valid, rows)

    def _batch(self, text: Windows, starts: Rows) -> Batch:
        tokens = text.cut(starts, extra=1)
        inputs, targets = tokens[:, :-1], tokens[:, 1:]
        if not self.recipe.batches.documents:
            return Batch(as_tensors(tokens=inputs, targets=targets), targets.size, targets.size)
        documents, positions = text.documents(starts, extra=1)
        targets = targets.copy()
        targets[documents[:, 1:] != documents[:, :-1]] = IGNORED  # unpredictable
        tensors = as_tensors(
            tokens=inputs,
            targets=targets,
            documents=documents[:, :-1],
            positions=positions[:, :-1],
        )
        return Batch(tensors, int((targets != IGNORED).sum()), inputs.size)

    def logits(self, model: Any, tensors: Mapping[str, Tensor]) -> Tensor:
        if isinstance(model, LSTMLanguageModel):
            return model(tensors["tokens"])[0]
        return model(tensors["tokens"], **_within_documents(tensors))

    def pending_logits(self, model: Any, tensors: Mapping[str, Tensor]) -> PendingLogits | None:
        if isinstance(model, LSTMLanguageModel):
            return None
        hidden = model.hidden(tensors["tokens"], **_within_documents(tensors))
        return model.head.prepare(hidden, model.embedding.weight)

    def sample(self, model: Any, text: str) -> str:
        if isinstance(model, LSTMLanguageModel):
            return ""
        most = max(1, min(200, model.config.max_len - len(self.tokenizer.encode(text)) - 1))
        return generate(
            model,
            text,
            max_new_tokens=most,
            temperature=0.8,
            top_k=50,
            seed=self.recipe.seed,
        )

    def run_once(self, model: Any, text: str) -> None:
        generate(model, text, max_new_tokens=1)

    def locate(self, rows: Rows) -> list[str]:
        length = self.recipe.batches.length
        return [f"tokens {int(start)} to {int(start) + length}" for start in rows]


def _within_documents(tensors: Mapping[str, Tensor]) -> dict[str, Any]:
    """The arguments that keep attention within documents, if the batch says where they are."""
    if "documents" not in tensors:
        return {}
    return {"mask": Documents(tensors["documents"]), "positions": tensors["positions"]}
