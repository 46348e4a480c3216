"""Our side of benchmarks/training.py: the step of `glassformer train` on batches made up here."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

import glassformer as gf
from glassformer.models import Config
from glassformer.training import Recipe
from glassformer.training.batches import Batch, Rows, as_tensors
from glassformer.training.display import SilentDisplay
from glassformer.training.float8 import replace_products
from glassformer.training.half_precision.layers import replace_layers
from glassformer.training.initialization import initialize_weights
from glassformer.training.loop import Trainer
from glassformer.training.loss import IGNORED
from glassformer.training.parallel import start_parallel
from glassformer.training.run_folder import RunFolder
from glassformer.training.step_plan import TrainingStep
from glassformer.training.tasks import LanguageModeling, Translation
from glassformer.training.tasks.packed_pairs import PackedShape
from glassformer.training.tasks.task import Objective, Task

SETTINGS = {
    "data": {"train": [{"files": ["made up"]}]},
    "until": {"steps": 1_000_000},
    "optimizer": {"betas": [0.9, 0.95], "eps": 1e-8, "weight_decay": 0.1, "decay_embeddings": True},
    "schedule": {"kind": "constant", "lr": 6e-4, "warmup": 50},
}


def read_text() -> np.ndarray:
    """The documentation and the chapters in this repository, as tokens of the shipped writer."""
    root = Path(__file__).parents[1]
    names = sorted([*root.glob("docs/*.md"), *root.glob("src/glassformer/course/**/*.md")])
    texts = [path.read_text(encoding="utf-8") for path in names]
    tokenizer = gf.load("writer").tokenizer
    return np.concatenate([np.array(ids) for ids in tokenizer.encode_many(texts)])


class Shape:
    """The sizes of a race: a model, and batches of `rows` windows of `length` tokens."""

    def __init__(self, config: Config, rows: int, length: int, text: np.ndarray) -> None:
        self.config, self.rows, self.length = config, rows, length
        self.text = text % config.vocab_size
        self.is_pair = config.family == "encoder_decoder"

    @property
    def n_tokens(self) -> int:
        """In a step: of source and target where there are two."""
        return self.rows * self.length * (2 if self.is_pair else 1)

    @property
    def lengths(self) -> np.ndarray:
        """Of the texts of a batch of pairs: from half of them to all of the tokens."""
        return np.linspace(self.length // 2, self.length, self.rows).round().astype(int)

    def build(self, **changes: Any) -> nn.Module:
        """Our model of this shape, always with the same weights."""
        torch.manual_seed(0)
        model = gf.build(self.config.replace(**changes))
        initialize_weights(model, "xavier" if self.is_pair else "gpt2")
        return model

    def batches(self, seed: int = 0) -> Iterator[Batch]:
        """Windows anywhere in the text, without end; of pairs, the second is what follows."""
        rng, L = np.random.default_rng(seed), self.length
        while True:
            starts = rng.integers(0, len(self.text) - 2 * L - 1, self.rows)[:, None]
            if not self.is_pair:
                x = self.text[starts + np.arange(L + 1)]
                tensors = as_tensors(tokens=x[:, :-1], targets=x[:, 1:])
                yield Batch(tensors, self.rows * L, self.rows * L)
                continue
            x = self.text[starts + np.arange(2 * L + 1)]
            # The same lengths in each batch: trainers fill batches with tokens, not with texts.
            source_lengths, lengths = (rng.permutation(self.lengths) for _ in range(2))
            inside = np.arange(L) < lengths[:, None]
            tensors = as_tensors(
                source=x[:, :L],
                source_lengths=source_lengths,
                tokens=x[:, L:-1],
                targets=np.where(inside, x[:, L + 1 :], IGNORED),
            )
            yield Batch(tensors, int(inside.sum()), self.n_tokens)


def settings_of(shape: Shape) -> dict[str, Any]:
    """The recipe of a race, as far as its sizes decide it."""
    task = "translation" if shape.is_pair else "language"
    return SETTINGS | {"task": task, "label_smoothing": 0.1 if shape.is_pair else 0.0}


class Ours:
    """Rounds of the training loop's own step; losses are read at the end of each."""

    def __init__(
        self, shape: Shape, folder: Path, device: str, *, compiled: bool, n_steps: int, **parts: Any
    ) -> None:
        self.shape, self.n_steps, self.curve = shape, n_steps, [0.0]
        compute = {"compile": compiled, "precision": "bf16" if device == "cuda" else "fp32"}
        compute |= parts.pop("compute", {})
        values = settings_of(shape) | {"batches": {"packed": parts.pop("packed", shape.is_pair)}}
        values |= {"optimizer": SETTINGS["optimizer"] | parts.pop("optimizer", {})}
        values |= {"compute": compute}
        recipe = Recipe.from_dict(values)
        self.model = shape.build()
        self.task = make_task(recipe, shape, **parts)
        place = start_parallel("ddp", device)
        self.trainer = Trainer(
            recipe, self.model, self.task, RunFolder(folder), place, SilentDisplay()
        )
        self.source = shape.batches()
        self.batch = self._next()

    def __call__(self) -> None:
        for _ in range(self.n_steps):
            rows = [np.arange(self.shape.rows)]
            self.trainer._update(TrainingStep(0, 0, 1, rows, [self.batch]))
            self.trainer.state.step += 1
            self.batch = self._next()  # while the device is still busy
        pending = self.trainer.losses.pending
        self.curve = torch.stack([each.loss for each in pending]).tolist()
        self.trainer.losses.read()

    def _next(self) -> Batch:
        batch = self.task.lay_out(next(self.source))
        return batch.pin() if self.trainer.parallel.device.type == "cuda" else batch


def make_task(
    recipe: Recipe, shape: Shape, *, chunked: bool = True, fixed_shape: bool | None = None
) -> Task:
    """The task of a recipe without its data; `chunked` and `fixed_shape` take parts away."""
    kind = Translation if recipe.task == "translation" else LanguageModeling
    task = _WithoutData.__new__(type("Task", (_WithoutData, kind), {}))
    task.recipe, task.shape = recipe, shape
    if not chunked:
        task.pending_logits = lambda *_: None  # type: ignore[method-assign]
    if fixed_shape is not None:
        task.fixed_shape = fixed_shape
    return task


class _WithoutData(Task):
    shape: Shape
    room: PackedShape | None = None

    def fix_shape(self) -> bool:
        if self.recipe.batches.packed:
            lengths = np.stack([self.shape.lengths] * 2, axis=1)
            self.room = PackedShape.of(
                lengths, max_tokens=int(lengths[:, 0].sum()), max_texts=self.shape.rows
            )
        return self.room is not None or self.fixed_shape

    def order(self, epoch: int) -> list[Rows]:
        del epoch
        return []


def training_loss(model: nn.Module, shape: Shape, batch: Batch, *, float8: bool = False) -> Tensor:
    """The mean loss of a batch as training computes it, which changes the model for good."""
    recipe = Recipe.from_dict(settings_of(shape) | {"batches": {"packed": shape.is_pair}})
    task = make_task(recipe, shape)
    if float8:
        replace_products(model)
    if next(model.parameters()).is_cuda:
        replace_layers(model)
    objective = Objective(model, task, smoothing=recipe.label_smoothing, float8=float8)
    tensors = task.lay_out(batch.to(torch.device("cpu"))).tensors
    device = next(model.parameters()).device
    return objective.train()({n: t.to(device) for n, t in tensors.items()}) / batch.n_targets
