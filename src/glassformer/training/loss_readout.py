"""Losses stay on the device until they are logged: reading one synchronizes with the GPU."""

import math
import time
from dataclasses import dataclass

import torch
from torch import Tensor

from glassformer.training.parallel import Parallel
from glassformer.training.step_plan import TrainingStep


@dataclass
class PendingLoss:
    """The loss of a step, not read from the device yet."""

    number: int
    loss: Tensor  # this process's part of the mean over all targets
    norm: Tensor
    step: TrainingStep


@dataclass
class NonFiniteLoss(Exception):
    """A step whose loss or gradient is NaN or infinite."""

    number: int
    value: float
    step: TrainingStep


class LossReadout:
    """The losses since the last read."""

    def __init__(self, parallel: Parallel) -> None:
        self.parallel = parallel
        self.pending: list[PendingLoss] = []
        self.restart_clock()

    def add(self, number: int, loss: Tensor, norm: Tensor, step: TrainingStep) -> None:
        self.pending.append(PendingLoss(number, loss.detach(), norm.detach(), step))

    def restart_clock(self) -> None:
        """Leave evaluating and saving out of the measured speed."""
        self.since = time.monotonic()

    def read(self, *, check_gradients: bool = True) -> dict[str, float]:
        """Mean loss, gradient norm and speed; raises NonFiniteLoss at the first that is not finite.

        The gradient scaler of float16 skips steps with infinite gradients by itself:
        `check_gradients=False` lets them pass.
        """
        if not self.pending:
            return {}
        norms = [_gather(each.norm) for each in self.pending]
        values = torch.stack([torch.stack([e.loss for e in self.pending]), torch.stack(norms)])
        losses = self.parallel.sum(values[0]).tolist()
        lengths = values[1].tolist()
        for each, loss, length in zip(self.pending, losses, lengths, strict=True):
            if not math.isfinite(loss) or (check_gradients and not math.isfinite(length)):
                value = length if math.isfinite(loss) else loss
                raise NonFiniteLoss(each.number, value, each.step)
        seconds = max(1e-9, time.monotonic() - self.since)
        n_tokens = sum(each.step.n_tokens for each in self.pending)
        means = {
            "loss": sum(losses) / len(losses),
            "norm": sum(lengths) / len(lengths),
            "tokens_per_s": float(round(n_tokens / seconds)),
        }
        self.pending.clear()
        self.restart_clock()
        return means


def _gather(norm: Tensor) -> Tensor:
    return norm.full_tensor() if hasattr(norm, "full_tensor") else norm  # type: ignore[attr-defined]
