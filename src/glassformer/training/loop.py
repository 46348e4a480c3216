"""The training loop: batches to losses to weights, and everything due in between.

    step ─ seeded by (seed, step, rank) ─ forward ─ backward ─ clip ─ update ─┐
      ▲       at intervals: log, evaluate, record a snapshot, save            │
      └───────────────────────────────────────────────────────────────────────┘

Losses stay on the device until they are logged, and nothing is saved before they are checked.
"""

from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import Any, NoReturn

import torch
from torch import Tensor

from glassformer.errors import CheckpointError
from glassformer.layers.embedding import trusting_tokens
from glassformer.storage import move_aside
from glassformer.training.attention_monitor import AttentionMonitor
from glassformer.training.averaging import MovingAverage, mean_weights, using_average
from glassformer.training.captured_steps import CapturedSteps, can_capture
from glassformer.training.checkpointing import (
    SavedTensors,
    optimizer_tensors,
    restore_optimizer,
    restore_weights,
    shard_like,
    write_checkpoint,
)
from glassformer.training.checkpoints import Selection, parse_step
from glassformer.training.display import Display
from glassformer.training.loss_readout import LossReadout, NonFiniteLoss
from glassformer.training.metrics import FILE as METRICS
from glassformer.training.metrics import Metrics
from glassformer.training.model_building import apply_compute
from glassformer.training.optimizer import clip_gradients
from glassformer.training.parallel import Parallel
from glassformer.training.precision import attention_kernels, autocast, gradient_scaler
from glassformer.training.prefetch import Prefetch
from glassformer.training.recipe import Recipe, SaveSettings
from glassformer.training.run_folder import RunFolder, explain_divergence, gather_weights
from glassformer.training.snapshots import discard_samples_after, record_snapshot
from glassformer.training.state import CheckpointState, FileDigest, TrainingState
from glassformer.training.step_plan import TrainingStep, plan_steps, seed_step
from glassformer.training.stop_signal import StopSignal, TrainingInterrupted
from glassformer.training.tasks import Objective, Task
from glassformer.training.tasks.task import validate

PREFETCHED_STEPS = 4
SAVED_EVERY = 1000  # steps; the default


class Trainer:
    """One run of a recipe: `run` trains to the end, `finish` saves and scores the model."""

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
        apply_compute(recipe.compute, self.model, parallel.device)
        objective = Objective(
            self.model,
            task,
            smoothing=recipe.label_smoothing,
            consistency=recipe.consistency,
            float8=recipe.compute.precision == "fp8",
        )
        self.objective = parallel.wrap(objective.train())
        self.optimizer = recipe.optimizer.build(self.model)
        self.average = MovingAverage(self.model, decay=recipe.save.ema) if recipe.save.ema else None
        self.scaler = gradient_scaler(recipe.compute.precision, parallel.device)
        self.compute = torch.compile(self.objective) if recipe.compute.compile else self.objective
        self.captured: CapturedSteps | None = None
        if can_capture(recipe, parallel) and task.fix_shape():
            self.captured = CapturedSteps(self.compute, self.model.parameters(), self._autocast)
        self.state = TrainingState()
        self.selected = Selection()
        self.schedule = recipe.full_schedule
        self.losses = LossReadout(parallel)

    def restore(self) -> None:
        """Continue from the newest intact checkpoint, if there is one."""
        selected = self.folder.checkpoints.select(self.parallel)
        self.selected = selected
        if selected.path is None or selected.state is None:
            return
        self.state = selected.state.training
        restore_weights(self.model, SavedTensors(selected.path, "model").get)
        restore_optimizer(self.model, self.optimizer, SavedTensors(selected.path, "optimizer"))
        if self.average is not None:
            saved = SavedTensors(selected.path, "average")
            self.average.weights = {
                name: shard_like(saved.get(name), place, name)
                for name, place in self.average.weights.items()
            }
        if self.state.scaler:
            self.scaler.load_state_dict(self.state.scaler)

    def _discard_leftovers(self) -> None:
        """Set aside what lies beyond the checkpoint from which the run continues."""
        step, saved = self.state.step, self.selected.state
        for path, why in self.selected.damaged:
            kept = move_aside(path, "damaged")
            self.display.announce(
                f"Checkpoint {path.name} cannot be used: {why}. It is kept as {kept.name}; the "
                f"run continues from step {step}."
            )
        self.folder.checkpoints.remove_unfinished()
        if self.state.best is not None and not (self.folder.path / "best").exists():
            self.display.announce("best/ is missing; the next better evaluation saves it again.")
        if saved is None and (self.folder.path / METRICS).exists():
            self.display.announce("There is no checkpoint yet: the run starts again at step 0.")
        self.metrics = Metrics(
            self.folder.path,
            step=step,
            digest=None if saved is None else saved.metrics,
            tensorboard=self.recipe.show.tensorboard,
        )
        if self.metrics.problem:
            self.display.announce(self.metrics.problem)
        discard_samples_after(self.folder.snapshots, step)

    def run(self) -> None:
        """Train to the end of the recipe; Ctrl-C saves first and raises TrainingInterrupted."""
        s, n = self.state, self.recipe.batches.accumulate
        if self.parallel.is_main:
            self._discard_leftovers()
        self.display.announce(self.task.describe())
        self.expected = self._expected_steps(-(-len(self.task.order(s.epoch)) // n))
        self.display.start(step=s.step, steps=self.expected)
        steps = plan_steps(self.task, self.parallel, epoch=s.epoch, index=s.index, accumulate=n)
        prefetched = Prefetch(steps, n=PREFETCHED_STEPS)
        self.losses.restart_clock()
        try:
            with StopSignal().catch() as stop, prefetched:
                while not self._is_over():
                    step = next(prefetched)
                    self._update(step)
                    s.step, s.epoch, s.index = s.step + 1, step.epoch, step.index + 1
                    if step.is_last:
                        s.epoch, s.index = step.epoch + 1, 0
                        self._expect(self._expected_steps(step.n_in_epoch))
                    self._run_due_actions(step.is_last)
                    if self._should_stop(stop):
                        self._stop_early()
            self._expect(s.step)
            self._log_losses()
        finally:
            self.display.stop()

    def finish(self) -> dict[str, float]:
        """Save the last checkpoint, then save and score model/."""
        if self.state.step:
            self._save_last()
        if self.average is not None:
            self.average.swap(self.model)
        elif self.recipe.save.average > 1:
            paths = self._checkpoints_to_average()
            states = [SavedTensors(path, "model").all() for path in paths]
            if states:
                restore_weights(self.model, mean_weights(states).__getitem__)
        scores = self._compute_scores()
        weights = gather_weights(self.model)
        if self.parallel.is_main:
            self.folder.save_model("model", self.model, weights)
            self.folder.remove_latest()  # model/ replaces it
            final = {f"final_{name}": value for name, value in scores.items()}
            self.metrics.add(step=self.state.step, epoch=self.state.epoch, **final)
        self.parallel.barrier()
        return scores

    def _expected_steps(self, n_in_epoch: int) -> int:
        """The number of steps if every epoch has `n_in_epoch` and the run does not stop early."""
        s, until = self.state, self.recipe.until
        if until.epochs is None:
            return until.steps or 0
        by_epochs = s.step - s.index + max(0, until.epochs - s.epoch) * n_in_epoch
        return by_epochs if until.steps is None else min(until.steps, by_epochs)

    def _expect(self, steps: int) -> None:
        if steps != self.expected:
            self.expected = steps
            self.display.expect(steps)

    def _is_over(self) -> bool:
        s, until = self.state, self.recipe.until
        return (
            (until.steps is not None and s.step >= until.steps)
            or (until.epochs is not None and s.epoch >= until.epochs)
            or (0 < until.patience <= s.stale)
        )

    def _should_stop(self, stop: StopSignal) -> bool:
        if self.parallel.world_size == 1:
            return stop.is_set
        if self.state.step % self.recipe.show.every:  # agreeing costs a message
            return False
        return bool(
            self.parallel.sum(torch.tensor(float(stop.is_set), device=self.parallel.device))
        )

    def _stop_early(self) -> NoReturn:
        """Save a checkpoint to resume from and the weights to use meanwhile, then stop."""
        self._save_last()
        with using_average(self.average, self.model):
            weights = gather_weights(self.model)
        if self.parallel.is_main:
            self.folder.save_model("latest", self.model, weights)
        self.parallel.barrier()
        raise TrainingInterrupted(
            f"Stopped and saved after step {self.state.step} of {self.expected}. The model is "
            f"usable now: --model {self.folder.path}. "
            f"Continue with: glassformer train --resume --out {self.folder.path}"
        )

    def _update(self, step: TrainingStep) -> None:
        """Forward, backward and one update of the weights, with gradient accumulation."""
        recipe, n_done = self.recipe, self.state.step
        seed_step(recipe.seed, n_done, self.parallel.rank)
        rate = self.schedule.rate(n_done)
        for group in self.optimizer.param_groups:
            group["lr"] = rate
        total: Tensor | None = None
        device, fixed = self.parallel.device, self.task.fixed_shape
        with trusting_tokens(self.model), attention_kernels(device, fixed_shape=fixed):
            for i, batch in enumerate(step.batches):
                batch.check_tokens(self.model.config.vocab_size)
                tensors = batch.to(device).tensors
                loss = self._differentiate(
                    tensors, self.parallel.scale / step.n_targets, i + 1 == len(step.batches)
                )
                total = loss if total is None else total + loss
        self.scaler.unscale_(self.optimizer)
        parameters, clip = self.model.parameters(), recipe.optimizer.clip
        norm = clip_gradients(parameters, clip, optimizer=self.optimizer)
        self.scaler.step(self.optimizer)
        self.scaler.update()
        self.optimizer.zero_grad(set_to_none=True)
        if self.average is not None:
            self.average.update(self.model, n=n_done + 1)
        assert total is not None
        self.losses.add(n_done + 1, total / step.n_targets, norm, step)

    def _differentiate(self, tensors: dict[str, Tensor], factor: float, is_last: bool) -> Tensor:
        """The loss of a batch; its gradients, times `factor`, are added to the parameters'."""
        if self.captured is not None:
            return self.captured(tensors, factor)
        with self.parallel.gradient_sync(self.objective, is_last=is_last):
            with self._autocast():
                loss = self.compute(tensors)
            self.scaler.scale(loss * factor).backward()
        return loss.detach()

    def _autocast(self) -> AbstractContextManager:
        return autocast(self.recipe.compute.precision, self.parallel.device)

    def _run_due_actions(self, is_epoch_end: bool) -> None:
        recipe, s = self.recipe, self.state
        if s.step % recipe.show.every == 0:
            self._log_losses()
        ended_epoch = is_epoch_end and s.epoch
        if _is_due(s.step, ended_epoch, recipe.evaluate):
            self._log_losses()
            self._evaluate()
        if recipe.snapshots.every and s.step % recipe.snapshots.every == 0:
            self._record_snapshot()
        if _is_due(s.step, ended_epoch, recipe.save):
            self._save(regular=True)

    def _log_losses(self) -> None:
        """Read the losses from the device, check that they are finite, and log their mean."""
        s = self.state
        try:
            # The float16 gradient scaler expects infinite gradients and handles them.
            means = self.losses.read(check_gradients=not self.scaler.is_enabled())
        except NonFiniteLoss as bad:
            self._fail_on_bad_loss(bad)
        if not means:
            return
        means["lr"] = self.schedule.rate(s.step - 1)
        if self.parallel.is_main:
            self.metrics.add(step=s.step, epoch=s.epoch, **means)
        means.pop("norm")
        self.display.step(s.step, **means)

    def _fail_on_bad_loss(self, bad: NonFiniteLoss) -> NoReturn:
        places = [place for rows in bad.step.rows for place in self.task.locate(rows)]
        if self.parallel.is_main:
            self.folder.save_bad_batch(
                step=bad.number,
                epoch=bad.step.epoch,
                value=str(bad.value),
                places=places,
                tensors=[{n: t.tolist() for n, t in b.tensors.items()} for b in bad.step.batches],
            )
        raise explain_divergence(bad.number, places, self.folder.path, bad.value) from None

    def _compute_scores(self) -> dict[str, float]:
        monitor = AttentionMonitor(self.model)
        watching = monitor if self.recipe.evaluate.attention else nullcontext()
        precision = autocast(self.recipe.compute.precision, self.parallel.device)
        with torch.no_grad(), precision, watching:
            scores = validate(self.objective, self.task, self.parallel)
        scores |= monitor.summary()
        if self.parallel.world_size == 1:
            scores |= self.task.extra_scores(self.model)
        return scores

    def _evaluate(self) -> None:
        s, recipe = self.state, self.recipe
        with using_average(self.average, self.model):
            scores = self._compute_scores()
            if not scores:
                return
            name = recipe.evaluate.best
            value = scores[name] if name in scores else scores["loss"]
            lower = name == "loss" or name not in scores
            is_better = s.best is None or (value < s.best if lower else value > s.best)
            s.stale = 0 if is_better else s.stale + 1
            if is_better:
                s.best = value
                weights = gather_weights(self.model)
                if self.parallel.is_main:
                    self.folder.save_model("best", self.model, weights)
        if self.parallel.is_main:
            valid = {f"valid_{name}": value for name, value in scores.items()}
            self.metrics.add(step=s.step, epoch=s.epoch, **valid)
        values = "  ".join(f"{name} {value:.4g}" for name, value in scores.items())
        self.display.announce(f"step {s.step}  epoch {s.epoch}  {values}{'  best' * is_better}")
        if 0 < recipe.until.patience <= s.stale:
            self.display.announce(f"Stopping early: no better score in {s.stale} evaluations.")
        self.losses.restart_clock()

    def _record_snapshot(self) -> None:
        wanted, step = self.recipe.snapshots, self.state.step
        if self.parallel.world_size > 1 or not wanted.text:
            return
        sample = record_snapshot(self.folder.snapshots, self.model, self.task, wanted.text, step)
        if sample:
            self.display.announce(f"step {step}  {sample}")

    def _save_last(self) -> None:
        """Save a checkpoint of the last step, unless one exists."""
        latest = self.folder.checkpoints.latest()
        if latest is None or parse_step(latest) != self.state.step:
            self._save(regular=False)

    def _save(self, *, regular: bool) -> None:
        self._log_losses()
        s, save = self.state, self.recipe.save
        s.scaler = self.scaler.state_dict()
        if regular:
            s.regular = [*s.regular, s.step][-save.average :] if save.average > 1 else []
        groups = {
            "model": dict(self.model.state_dict()),
            "optimizer": optimizer_tensors(self.model, self.optimizer),
        }
        if self.average is not None:
            groups["average"] = self.average.weights
        path = self.folder.checkpoints.path(s.step, regular=regular)
        digest = self.metrics.digest() if self.parallel.is_main else FileDigest(size=0, sha256="")
        write_checkpoint(path, groups, CheckpointState(training=s, metrics=digest), self.parallel)
        if self.parallel.is_main:
            self.folder.checkpoints.prune(keep=save.keep, averaged=s.regular)
        self.losses.restart_clock()

    def _checkpoints_to_average(self) -> list[Path]:
        """The checkpoints whose mean becomes model/; the main process verifies them for all."""
        steps, problem, checkpoints = self.state.regular, "", self.folder.checkpoints
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


def _is_due(step: int, ended_epoch: int, when: Any) -> bool:
    every = when.every_steps
    if isinstance(when, SaveSettings) and every is None and when.every_epochs is None:
        every = SAVED_EVERY
    by_steps = every and step % every == 0
    return bool(
        by_steps or (when.every_epochs and ended_epoch and not ended_epoch % when.every_epochs)
    )
