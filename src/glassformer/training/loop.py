"""The loop: batches to losses to weights, with everything that happens in between.

    step ─ seeded by (seed, step, rank) ─ forward ─ backward ─ clip ─ update ─┐
      ▲       every so often: look, validate, film, save                      │
      └───────────────────────────────────────────────────────────────────────┘

Losses stay on the device until somebody looks, and nothing is saved before they were looked at.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any, NoReturn

import torch
from torch import Tensor, nn
from torch.utils.checkpoint import checkpoint

from glassformer.errors import CheckpointError
from glassformer.layers import Block
from glassformer.storage import rename_free
from glassformer.training.averaging import MovingAverage, mean_weights
from glassformer.training.checkpointing import (
    SavedTensors,
    like,
    optimizer_tensors,
    restore_optimizer,
    restore_weights,
    write_checkpoint,
)
from glassformer.training.checkpoints import Selected, step_of
from glassformer.training.display import Display
from glassformer.training.loss_readout import Bad, Losses
from glassformer.training.metrics import FILE as METRICS
from glassformer.training.metrics import Metrics
from glassformer.training.optimizer import clip_gradients
from glassformer.training.parallel import Parallel
from glassformer.training.precision import computing, gradient_scaler
from glassformer.training.prefetch import Ahead
from glassformer.training.recipe import Recipe, Save
from glassformer.training.run_folder import RunFolder, explain_stop, whole_state
from glassformer.training.snapshots import forget_samples, take_picture
from glassformer.training.state import Progress, Seal, State
from glassformer.training.step_plan import Work, seed_step, steps_from
from glassformer.training.stop_signal import Bell, Interrupted
from glassformer.training.tasks import Objective, Task
from glassformer.training.tasks.task import validate

AHEAD = 4  # steps whose batches are made beforehand
SAVED_EVERY = 1000  # steps, unless a recipe says otherwise


class Trainer:
    """One run of a recipe; `run` trains to the end, `finish` makes the model."""

    def __init__(
        self,
        recipe: Recipe,
        model: Any,
        task: Task,
        folder: RunFolder,
        parallel: Parallel,
        display: Display,
    ) -> None:
        self.recipe, self.task, self.folder = recipe, task, folder
        self.parallel, self.display = parallel, display
        self.model = model.to(parallel.device).train()
        if recipe.compute.checkpointing:
            recompute_blocks(self.model)
        objective = Objective(
            self.model, task, smoothing=recipe.label_smoothing, consistency=recipe.consistency
        )
        self.objective = parallel.wrap(objective.train())
        self.optimizer = recipe.optimizer.build(self.model)
        self.average = MovingAverage(self.model, decay=recipe.save.ema) if recipe.save.ema else None
        self.scaler = gradient_scaler(recipe.compute.precision, parallel.device)
        self.compute = torch.compile(self.objective) if recipe.compute.compile else self.objective
        self.progress = Progress()
        self.selected = Selected()
        self.schedule = recipe.full_schedule
        self.losses = Losses(parallel)

    def restore(self) -> None:
        """Continue from the newest whole checkpoint, where there is one."""
        found = self.folder.checkpoints.select(self.parallel)
        self.selected = found
        if found.path is None or found.state is None:
            return
        self.progress = found.state.progress
        restore_weights(self.model, SavedTensors(found.path, "model").get)
        restore_optimizer(self.model, self.optimizer, SavedTensors(found.path, "optimizer"))
        if self.average is not None:
            saved = SavedTensors(found.path, "average")
            self.average.weights = {
                name: like(saved.get(name), place, name)
                for name, place in self.average.weights.items()
            }
        if self.progress.scaler:
            self.scaler.load_state_dict(self.progress.scaler)

    def _clear_up(self) -> None:
        """Put away what was left after the checkpoint from which the run continues."""
        p, checkpoints, state = self.progress, self.folder.checkpoints, self.selected.state
        for path, why in self.selected.damaged:
            kept = rename_free(path, "damaged")
            self.display.tell(
                f"Checkpoint {path.name} cannot be used: {why}. It is kept as {kept.name}; the "
                f"run continues from step {p.step}."
            )
        checkpoints.remove_unfinished()
        if p.best is not None and not (self.folder.path / "best").exists():
            self.display.tell("best/ is missing: the next evaluation that is better saves it.")
        if state is None and (self.folder.path / METRICS).exists():
            self.display.tell("There is no checkpoint yet: the run starts again at step 0.")
        seal = None if state is None else state.metrics
        self.metrics = Metrics(
            self.folder.path, step=p.step, seal=seal, tensorboard=self.recipe.show.tensorboard
        )
        if self.metrics.problem:
            self.display.tell(self.metrics.problem)
        forget_samples(self.folder.film, p.step)

    def run(self) -> None:
        """Train until the recipe's end; Ctrl-C saves first, and raises Interrupted."""
        p, until = self.progress, self.recipe.until
        if self.parallel.is_main:
            self._clear_up()
        self.display.tell(self.task.described())
        self.display.start(step=p.step, steps=self._expected_steps())
        n = self.recipe.batches.accumulate
        steps = steps_from(self.task, self.parallel, epoch=p.epoch, index=p.index, accumulate=n)
        work = Ahead(steps, n=AHEAD)
        self.losses.rest()
        try:
            with Bell().listening() as bell, work:
                while not self._is_over():
                    each = next(work)
                    self._step(each)
                    p.step, p.epoch, p.index = p.step + 1, each.epoch, each.index + 1
                    if each.is_last:
                        p.epoch, p.index = each.epoch + 1, 0
                    self._between(each.is_last)
                    if self._is_rung(bell):
                        self._save_last()
                        raise Interrupted(
                            f"Stopped and saved after step {p.step} of {until.steps or '?'}. "
                            f"Continue with: glassformer train --resume --out {self.folder.path}"
                        )
        finally:
            self.display.stop()

    def finish(self) -> dict[str, float]:
        """Save the last state, make model/ of it, and score that."""
        if self.progress.step:
            self._save_last()
        recipe, state = self.recipe, None
        if self.average is not None:
            self.average.swap(self.model)
        elif recipe.save.average > 1:
            paths = self._averaged_paths()
            states = [SavedTensors(path, "model").all() for path in paths]
            if states:
                state = mean_weights(states)
                restore_weights(self.model, state.__getitem__)
        scores = self._scores()
        state = whole_state(self.model)
        if self.parallel.is_main:
            self.folder.save_model("model", self.model, state)
            final = {f"final_{name}": value for name, value in scores.items()}
            self.metrics.add(step=self.progress.step, epoch=self.progress.epoch, **final)
        self.parallel.barrier()
        return scores

    def _expected_steps(self) -> int:
        until = self.recipe.until
        if until.epochs is None:
            return until.steps or 0
        per_epoch = -(-len(self.task.order(0)) // self.recipe.batches.accumulate)
        return min(until.steps or 1 << 62, until.epochs * per_epoch)

    def _is_over(self) -> bool:
        p, until = self.progress, self.recipe.until
        return (
            (until.steps is not None and p.step >= until.steps)
            or (until.epochs is not None and p.epoch >= until.epochs)
            or (0 < until.patience <= p.stale)
        )

    def _step(self, work: Work) -> None:
        recipe, step = self.recipe, self.progress.step
        seed_step(recipe.seed, step, self.parallel.rank)
        rate = self.schedule.rate(step)
        for group in self.optimizer.param_groups:
            group["lr"] = rate
        total: Tensor | None = None
        for i, batch in enumerate(work.batches):
            tensors = batch.to(self.parallel.device).tensors
            is_last = i + 1 == len(work.batches)
            with self.parallel.gathering(self.objective, is_last=is_last):
                with computing(recipe.compute.precision, self.parallel.device):
                    loss = self.compute(tensors)
                self.scaler.scale(loss * (self.parallel.scale / work.n_targets)).backward()
            total = loss.detach() if total is None else total + loss.detach()
        self.scaler.unscale_(self.optimizer)
        norm = clip_gradients(self.model.parameters(), recipe.optimizer.clip)
        self.scaler.step(self.optimizer)
        self.scaler.update()
        self.optimizer.zero_grad(set_to_none=True)
        if self.average is not None:
            self.average.update(self.model, n=step + 1)
        assert total is not None
        self.losses.add(step + 1, total / work.n_targets, norm, work)

    def _between(self, is_epoch: bool) -> None:
        """What is due after a step."""
        recipe, p = self.recipe, self.progress
        if p.step % recipe.show.every == 0:
            self._look()
        ended = is_epoch and p.epoch
        if _is_due(p.step, ended, recipe.evaluate):
            self._look()
            self._evaluate()
        if recipe.film.every and p.step % recipe.film.every == 0:
            self._take_picture()
        if _is_due(p.step, ended, recipe.save):
            self._save(regular=True)

    def _look(self) -> None:
        """Read losses from the device, make sure that they are numbers, and tell them."""
        p = self.progress
        try:
            # The scaler of float16 is there to meet infinite gradients.
            told = self.losses.read(gradients=not self.scaler.is_enabled())
        except Bad as bad:
            self._give_up(bad)
        if not told:
            return
        told["lr"] = self.schedule.rate(p.step - 1)
        if self.parallel.is_main:
            self.metrics.add(step=p.step, epoch=p.epoch, **told)
        told.pop("norm")
        self.display.step(p.step, **told)

    def _give_up(self, bad: Bad) -> NoReturn:
        places = [place for rows in bad.work.rows for place in self.task.places(rows)]
        if self.parallel.is_main:
            self.folder.save_bad_batch(
                step=bad.step,
                epoch=bad.work.epoch,
                value=str(bad.value),
                places=places,
                tensors=[{n: t.tolist() for n, t in b.tensors.items()} for b in bad.work.batches],
            )
        raise explain_stop(bad.step, places, self.folder.path, bad.value) from None

    def _scores(self) -> dict[str, float]:
        with torch.no_grad(), computing(self.recipe.compute.precision, self.parallel.device):
            scores = validate(self.objective, self.task, self.parallel)
        if self.parallel.world_size == 1:
            scores |= self.task.more_scores(self.model)
        return scores

    def _evaluate(self) -> None:
        p, recipe = self.progress, self.recipe
        with self._averaged():
            scores = self._scores()
            if not scores:
                return
            name = recipe.evaluate.best
            value = scores[name] if name in scores else scores["loss"]
            lower = name == "loss" or name not in scores
            is_better = p.best is None or (value < p.best if lower else value > p.best)
            p.stale = 0 if is_better else p.stale + 1
            if is_better:
                p.best = value
                state = whole_state(self.model)
                if self.parallel.is_main:
                    self.folder.save_model("best", self.model, state)
        if self.parallel.is_main:
            told = {f"valid_{name}": value for name, value in scores.items()}
            self.metrics.add(step=p.step, epoch=p.epoch, **told)
        shown = "  ".join(f"{name} {value:.4g}" for name, value in scores.items())
        self.display.tell(f"step {p.step}  epoch {p.epoch}  {shown}{'  best' * is_better}")
        self.losses.rest()

    def _take_picture(self) -> None:
        film = self.recipe.film
        if self.parallel.world_size > 1 or not film.text:
            return
        sample = take_picture(
            self.folder.film, self.model, self.task, film.text, self.progress.step
        )
        if sample:
            self.display.tell(f"step {self.progress.step}  {sample}")

    def _save_last(self) -> None:
        """Save where the run ends, unless a checkpoint of this step is there."""
        latest = self.folder.checkpoints.latest()
        if latest is None or step_of(latest) != self.progress.step:
            self._save(regular=False)

    def _save(self, *, regular: bool) -> None:
        self._look()
        p, save = self.progress, self.recipe.save
        p.scaler = self.scaler.state_dict()
        if regular:
            p.regular = [*p.regular, p.step][-save.average :] if save.average > 1 else []
        groups = {
            "model": dict(self.model.state_dict()),
            "optimizer": optimizer_tensors(self.model, self.optimizer),
        }
        if self.average is not None:
            groups["average"] = self.average.weights
        path = self.folder.checkpoints.path(p.step, regular=regular)
        seal = self.metrics.seal() if self.parallel.is_main else Seal(size=0, sha256="")
        write_checkpoint(path, groups, State(progress=p, metrics=seal), self.parallel)
        if self.parallel.is_main:
            self.folder.checkpoints.tidy(keep=save.keep, averaged=p.regular)
        self.losses.rest()

    def _averaged_paths(self) -> list[Path]:
        """The checkpoints that model/ is the mean of; the main process checks them for all."""
        steps, problem, checkpoints = self.progress.regular, "", self.folder.checkpoints
        if self.parallel.is_main:
            try:
                checkpoints.check_weights(steps)
            except CheckpointError as error:
                problem = (
                    f"{self.folder.path} has no model yet: {error} Restore it, or use the last "
                    "weights alone: --resume --set save.average=1."
                )
        failed = torch.tensor(float(bool(problem)), device=self.parallel.device)
        if self.parallel.sum(failed):
            raise CheckpointError(problem or "A checkpoint to average is damaged.")
        return [checkpoints.path(step, regular=True) for step in steps]

    @contextmanager
    def _averaged(self) -> Iterator[None]:
        """Evaluate what model/ would be, where that is the moving average."""
        if self.average is None:
            yield
            return
        self.average.swap(self.model)
        try:
            yield
        finally:
            self.average.swap(self.model)

    def _is_rung(self, bell: Bell) -> bool:
        if self.parallel.world_size == 1:
            return bell.rang
        if self.progress.step % self.recipe.show.every:  # agreeing costs a message to all
            return False
        return bool(self.parallel.sum(torch.tensor(float(bell.rang), device=self.parallel.device)))


def recompute_blocks(model: nn.Module) -> None:
    """Let each block forget what is inside it, and compute it again on the way back."""
    for part in model.modules():
        if isinstance(part, Block):
            part.forward = partial(checkpoint, part.forward, use_reentrant=False)


def _is_due(step: int, ended_epoch: int, when: Any) -> bool:
    every = when.every_steps
    if isinstance(when, Save) and every is None and when.every_epochs is None:
        every = SAVED_EVERY
    by_steps = every and step % every == 0
    return bool(
        by_steps or (when.every_epochs and ended_epoch and not ended_epoch % when.every_epochs)
    )
