"""Losses that wait on the device until somebody looks: reading one makes a GPU wait."""

import math
import time
from dataclasses import dataclass

import torch
from torch import Tensor

from glassformer.training.parallel import Parallel
from glassformer.training.step_plan import Work


@dataclass
class Unread:
    """A step nobody has looked at."""

    step: int
    loss: Tensor  # this process's part of the mean over all targets
    norm: Tensor
    work: Work


@dataclass
class Bad(Exception):
    """A step whose loss or gradient is no number."""

    step: int
    value: float
    work: Work


class Losses:
    """The steps since the last look."""

    def __init__(self, parallel: Parallel) -> None:
        self.parallel = parallel
        self.unread: list[Unread] = []
        self.rest()

    def add(self, step: int, loss: Tensor, norm: Tensor, work: Work) -> None:
        self.unread.append(Unread(step, loss.detach(), norm.detach(), work))

    def rest(self) -> None:
        """What was done until now counts as no training time."""
        self.since = time.monotonic()

    def read(self, *, gradients: bool = True) -> dict[str, float]:
        """Mean loss and gradient length, and speed; raises Bad at the first that is no number.

        float16 skips steps of infinite gradients by itself: `gradients=False` passes over them.
        """
        if not self.unread:
            return {}
        norms = [_whole(each.norm) for each in self.unread]
        values = torch.stack([torch.stack([e.loss for e in self.unread]), torch.stack(norms)])
        losses = self.parallel.sum(values[0]).tolist()
        lengths = values[1].tolist()
        for each, loss, length in zip(self.unread, losses, lengths, strict=True):
            if not math.isfinite(loss) or (gradients and not math.isfinite(length)):
                raise Bad(each.step, length if math.isfinite(loss) else loss, each.work)
        seconds = max(1e-9, time.monotonic() - self.since)
        n_tokens = sum(each.work.n_tokens for each in self.unread)
        told = {
            "loss": sum(losses) / len(losses),
            "norm": sum(lengths) / len(lengths),
            "tokens_per_s": float(round(n_tokens / seconds)),
        }
        self.unread.clear()
        self.rest()
        return told


def _whole(norm: Tensor) -> Tensor:
    return norm.full_tensor() if hasattr(norm, "full_tensor") else norm  # type: ignore[attr-defined]
