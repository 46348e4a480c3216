"""How large the learning rate is at each step.

inverse-sqrt   ╱‾‾╲___      up from `start`, then as 1/√step (fairseq's)
noam           ╱‾╲____      the same curve by the paper's formula (Vaswani et al. 2017, §5.3)
cosine         ╱‾‾╲╲__      down to `least` along half a wave (Loshchilov and Hutter 2017)
stable         ╱‾‾‾‾‾╲      level, and down at the end alone (Hu et al. 2024, §4)
constant       ╱‾‾‾‾‾‾
"""

import math
from dataclasses import dataclass
from typing import Literal

from glassformer.errors import ConfigError
from glassformer.settings import Count, NonNegative, Positive, Whole, check_bounds

Kind = Literal["inverse-sqrt", "noam", "cosine", "stable", "constant"]


@dataclass(frozen=True, kw_only=True, slots=True)
class Schedule:
    """A learning rate as a function of the number of updates made so far.

    >>> schedule = Schedule(kind="inverse-sqrt", lr=0.005, warmup=2000, start=1e-7)
    >>> [round(schedule.rate(step), 7) for step in (0, 1000, 2000, 8000)]
    [1e-07, 0.0025, 0.005, 0.0025]
    """

    kind: Kind = "inverse-sqrt"
    lr: Positive = 1e-3  # the highest; for noam a factor of the paper's formula
    warmup: Whole = 400  # updates on the way up
    start: NonNegative = 0.0  # where the way up begins: inverse-sqrt
    least: NonNegative = 0.0  # where the way down ends: cosine, stable
    steps: Count | None = None  # when the way down ends: cosine, stable
    decay: Count | None = None  # updates on the way down: stable, a tenth of all unless given
    dim: Count | None = None  # the model's width: noam

    def __post_init__(self) -> None:
        check_bounds(self, "schedule.")
        if self.kind in ("inverse-sqrt", "noam") and self.warmup < 1:
            raise ConfigError(
                f"A schedule of kind {self.kind!r} must have warm-up steps; got "
                f"warmup={self.warmup}. Use warmup = 4000, as the paper does."
            )
        if self.least > self.lr:
            raise ConfigError(
                f"schedule.least must lie in 0 … lr; got least={self.least}, lr={self.lr}."
            )

    @property
    def needs_end(self) -> bool:
        """Whether the rate depends on when the run is to end."""
        return self.kind in ("cosine", "stable")

    def rate(self, step: int) -> float:
        """The rate for the update after `step` others."""
        if self.kind == "noam":
            return self._noam(step + 1)
        if self.kind == "inverse-sqrt":
            if step < self.warmup:
                return self.start + step * (self.lr - self.start) / self.warmup
            return self.lr * (self.warmup / step) ** 0.5
        if step < self.warmup:
            return self.lr * (step + 1) / (self.warmup + 1)
        if self.kind == "constant":
            return self.lr
        end = self._end()
        if self.kind == "cosine":
            done = min(1.0, (step - self.warmup) / max(1, end - self.warmup))
            return self.least + 0.5 * (1 + math.cos(math.pi * done)) * (self.lr - self.least)
        decay = max(1, end // 10 if self.decay is None else self.decay)
        left = min(1.0, max(0.0, (end - step) / decay))
        return self.least + left * (self.lr - self.least)

    def _noam(self, n: int) -> float:
        if self.dim is None:
            raise ConfigError("A schedule of kind 'noam' must know the model's width; give dim.")
        return self.lr * self.dim**-0.5 * min(n**-0.5, n * self.warmup**-1.5)

    def _end(self) -> int:
        if self.steps is None:
            raise ConfigError(
                f"A schedule of kind {self.kind!r} must know when it ends; give schedule.steps."
            )
        return self.steps
