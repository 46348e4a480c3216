"""From a recipe to a finished run: `gf.train`."""

from contextlib import nullcontext
from dataclasses import dataclass, replace
from pathlib import Path

import torch

from glassformer.errors import ConfigError, TrainingError
from glassformer.installation import install_command
from glassformer.training.data import prepare, prepared
from glassformer.training.display import Display, Silence, display
from glassformer.training.loop import Trainer
from glassformer.training.model_building import build_model
from glassformer.training.parallel import Parallel, parallel
from glassformer.training.recipe import Recipe
from glassformer.training.run_folder import RunFolder
from glassformer.training.scores import has_sacrebleu
from glassformer.training.tasks import TASKS


@dataclass(frozen=True, kw_only=True, slots=True)
class Result:
    """A finished run: where it is, how many steps it took, what its model scores."""

    folder: Path
    steps: int
    scores: dict[str, float]
    is_main: bool = True  # of many processes, the one that speaks for all

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
    """Run a recipe, or the recipe in a TOML file, to its end; the result lies in a folder.

    ::

        result = gf.train("recipes/shakespeare.toml", out="run")
        gf.generate(gf.load(result.model), "ROMEO:")

    With `resume` a run that was stopped or killed continues, and ends with the same weights.
    """
    if not isinstance(recipe, Recipe):
        recipe = Recipe.from_toml(recipe)
    place = out or recipe.out
    if place is None:
        raise ConfigError("A run needs a folder; give out, or --out.")
    folder = RunFolder(Path(place))
    processes = parallel(recipe.compute.parallel, device)
    told = (display() if show is None else show) if processes.is_main else Silence()
    if processes.device.type == "cuda":
        torch.backends.cuda.matmul.allow_tf32 = recipe.compute.tf32
    try:
        with folder.alone() if processes.is_main else nullcontext():
            return _run(recipe, folder, processes, told, resume=resume)
    except OSError as error:
        place = error.filename or folder.path
        raise TrainingError(
            f"{place} could not be read or written: {error.strerror or error}. What was saved in "
            f"{folder.path} stays there; continue with --resume once this is mended."
        ) from None
    finally:
        processes.close()


def _run(
    recipe: Recipe, folder: RunFolder, processes: Parallel, told: Display, *, resume: bool
) -> Result:
    if processes.is_main:
        for sentence in folder.begin(recipe, resume=resume):
            told.tell(sentence)
        prepare(recipe, folder.path, has_begun=folder.has_begun)
    processes.barrier()
    data = prepared(folder.path)
    if recipe.evaluate.bleu and not has_sacrebleu():
        told.tell(f"BLEU is left out: sacrebleu is not installed ({install_command('train')}).")
        recipe = _without_bleu(recipe)
    task = TASKS[recipe.task](recipe, data)
    trainer = Trainer(recipe, build_model(recipe, task), task, folder, processes, told)
    trainer.restore()
    trainer.run()
    scores = trainer.finish()
    return Result(
        folder=folder.path,
        steps=trainer.progress.step,
        scores=scores,
        is_main=processes.is_main,
    )


def _without_bleu(recipe: Recipe) -> Recipe:
    best = "loss" if recipe.evaluate.best in ("bleu", "chrf") else recipe.evaluate.best
    return replace(recipe, evaluate=replace(recipe.evaluate, bleu=False, best=best))
