"""Learning-rate schedules: warm-up, then decay.

inverse-sqrt   ╱‾‾╲___      warm-up from `start`, then 1/√step (as in fairseq)
noam           ╱‾╲____      the same curve by the paper's formula (Vaswani et al. 2017, §5.3)
cosine         ╱‾‾╲╲__      cosine decay to `least` (Loshchilov and Hutter 2017)
stable         ╱‾‾‾‾‾╲      constant, then decay at the end (WSD; Hu et al. 2024, §4)
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
    """The learning rate as a function of the number of updates made so far.

    >>> schedule = Schedule(kind="inverse-sqrt", lr=0.005, warmup=2000, start=1e-7)
    >>> [round(schedule.rate(step), 7) for step in (0, 1000, 2000, 8000)]
    [1e-07, 0.0025, 0.005, 0.0025]
    """

    kind: Kind = "inverse-sqrt"
    lr: Positive = 1e-3  # the peak; for noam a factor in the paper's formula
    warmup: Whole = 400  # warm-up updates
    start: NonNegative = 0.0  # first rate of the warm-up: inverse-sqrt
    least: NonNegative = 0.0  # final rate: cosine, stable
    steps: Count | None = None  # last step of the decay: cosine, stable
    decay: Count | None = None  # updates of the decay: stable; default: a tenth of `steps`
    dim: Count | None = None  # model width: noam

    def __post_init__(self) -> None:
        check_bounds(self, "schedule.")
        if self.kind in ("inverse-sqrt", "noam") and self.warmup < 1:
            raise ConfigError(
                f"A {self.kind!r} schedule needs warm-up steps; got "
                f"warmup={self.warmup}. Use warmup = 4000, as the paper does."
            )
        if self.least > self.lr:
            raise ConfigError(
                f"schedule.least must lie in 0 … lr; got least={self.least}, lr={self.lr}."
            )

    @property
    def needs_end(self) -> bool:
        """Whether the rate depends on the last step."""
        return self.kind in ("cosine", "stable")

    def rate(self, step: int) -> float:
        """The rate of the next update after `step` updates."""
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
            raise ConfigError("A 'noam' schedule needs the model's width; set dim.")
        return self.lr * self.dim**-0.5 * min(n**-0.5, n * self.warmup**-1.5)

    def _end(self) -> int:
        if self.steps is None:
            raise ConfigError(f"A {self.kind!r} schedule needs a last step; set schedule.steps.")
        return self.steps
