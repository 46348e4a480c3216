"""From a recipe to a finished run: `gf.train`."""

from contextlib import nullcontext
from dataclasses import dataclass, replace
from pathlib import Path

import torch

from glassformer.errors import ConfigError, TrainingError
from glassformer.installation import install_command
from glassformer.training.data import open_data, prepare_data
from glassformer.training.display import Display, SilentDisplay, choose_display
from glassformer.training.loop import Trainer
from glassformer.training.model_building import build_model, model_config
from glassformer.training.parallel import Parallel, start_parallel
from glassformer.training.recipe import Recipe
from glassformer.training.run_folder import RunFolder
from glassformer.training.scores import has_sacrebleu
from glassformer.training.tasks import TASKS


@dataclass(frozen=True, kw_only=True, slots=True)
class Result:
    """A finished run: its folder, the number of steps, the scores of its model."""

    folder: Path
    steps: int
    scores: dict[str, float]
    is_main: bool = True  # whether this process reports for all of them

    @property
    def model(self) -> Path:
        """The folder that `gf.load` reads."""
        return self.folder / "model"


def train(
    recipe: Recipe | str | Path,
    *,
    out: str | Path | None = None,
    resume: bool = False,
    device: str | torch.device | None = None,
    show: Display | None = None,
) -> Result:
    """Train a model from a recipe, or from a recipe file (TOML), in a run folder.

    ::

        result = gf.train("recipes/shakespeare.toml", out="run")
        gf.generate(gf.load(result.model), "ROMEO:")

    With `resume`, a stopped or killed run continues and ends with the same weights.

    >>> import tempfile
    >>> import glassformer as gf
    >>> settings = {"task": "language", "until": {"steps": 2}, "tokenizer": {"vocab_size": 300}}
    >>> settings |= {"model": {"dim": 16, "n_layers": 1, "n_heads": 2}}
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     text = Path(folder, "book.txt")
    ...     _ = text.write_text("The cat sat on the mat.\\n" * 200)
    ...     data = {"train": [{"files": [str(text)]}]}
    ...     recipe = gf.Recipe.from_dict({**settings, "data": data})
    ...     result = gf.train(recipe, out=f"{folder}/run")
    ...     result.steps, gf.load(result.model).config.dim
    (2, 16)
    """
    if not isinstance(recipe, Recipe):
        recipe = Recipe.from_toml(recipe)
    place = out or recipe.out
    if place is None:
        raise ConfigError("A run needs a folder; set out, or --out on the command line.")
    if "from" not in recipe.model:
        model_config(recipe, vocab_size=1)  # a wrong [model] fails before the data is read
    folder = RunFolder(Path(place))
    processes = start_parallel(recipe.compute.parallel, device)
    display = (choose_display() if show is None else show) if processes.is_main else SilentDisplay()
    if processes.device.type == "cuda":
        torch.backends.cuda.matmul.allow_tf32 = recipe.compute.tf32
    try:
        with folder.lock() if processes.is_main else nullcontext():
            return _run(recipe, folder, processes, display, resume=resume)
    except OSError as error:
        place = error.filename or folder.path
        raise TrainingError(
            f"{place} could not be read or written: {error.strerror or error}. What was saved in "
            f"{folder.path} is intact; continue with --resume once this is fixed."
        ) from None
    finally:
        processes.close()


def _run(
    recipe: Recipe, folder: RunFolder, processes: Parallel, display: Display, *, resume: bool
) -> Result:
    if processes.is_main:
        for sentence in folder.claim(recipe, resume=resume):
            display.announce(sentence)
        prepare_data(recipe, folder.path, has_begun=folder.has_begun)
    processes.barrier()
    data = open_data(folder.path)
    if recipe.evaluate.bleu and not has_sacrebleu():
        display.announce(
            f"BLEU is skipped: sacrebleu is not installed ({install_command('train')})."
        )
        recipe = _without_bleu(recipe)
    task = TASKS[recipe.task](recipe, data)
    trainer = Trainer(recipe, build_model(recipe, task), task, folder, processes, display)
    trainer.restore()
    trainer.run()
    scores = trainer.finish()
    return Result(
        folder=folder.path,
        steps=trainer.state.step,
        scores=scores,
        is_main=processes.is_main,
    )


def _without_bleu(recipe: Recipe) -> Recipe:
    best = "loss" if recipe.evaluate.best in ("bleu", "chrf") else recipe.evaluate.best
    return replace(recipe, evaluate=replace(recipe.evaluate, bleu=False, best=best))
