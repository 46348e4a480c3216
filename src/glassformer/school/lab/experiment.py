"""What an experiment is: it measures, judges what it measured, and draws it.

    measure(size, seed, progress) ─→ numbers ─┬→ judge(numbers)       → Verdict
                                              └→ draw(numbers, texts) → Chart

Numbers are plain values, so that they can be kept, sent and doctored. `progress` is handed them
while they are measured, and `draw` draws what there is by then: a list that is not full yet, a
mapping from which names are missing. A verdict is made of checks;
the first is the heart of the claim: without it the claim does not hold, with it and without another
it holds partly. What is trained is measured with several seeds and judged as a whole: see
repetition.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Literal

from glassformer.render.chart import Chart
from glassformer.school.lab.texts import ExperimentTexts

Outcome = Literal["holds", "partly", "fails"]
Size = Literal["quick", "full"]
Numbers = dict[str, Any]

OUTCOMES: tuple[Outcome, ...] = ("holds", "partly", "fails")
SIZES: tuple[Size, ...] = ("quick", "full")


@dataclass(frozen=True, slots=True)
class Check:
    """One thing that must hold, and the numbers it was decided by.

    `key` names its sentence in the experiment's texts, which says the numbers and what is asked.
    Of several runs, it holds only if it holds in each of them.
    """

    key: str
    holds: bool
    values: dict[str, Any] = field(default_factory=dict)
    in_runs: tuple[bool, ...] = ()  # whether it holds in each of several runs

    @property
    def n_runs(self) -> int:
        return len(self.in_runs) or 1

    @property
    def n_held(self) -> int:
        return sum(self.in_runs) if self.in_runs else int(self.holds)


@dataclass(frozen=True, slots=True)
class Verdict:
    """What is to be thought of a claim, and why.

    >>> Verdict.of(Check("slope", True), Check("bits", False)).outcome
    'partly'
    """

    outcome: Outcome
    checks: tuple[Check, ...]

    @classmethod
    def of(cls, *checks: Check) -> "Verdict":
        """The first check is the heart of the claim."""
        if all(check.holds for check in checks):
            return cls("holds", checks)
        return cls("partly" if checks[0].holds else "fails", checks)


@dataclass(frozen=True, kw_only=True, slots=True)
class Experiment:
    """A claim that can be tested on this machine.

    `look_at` names what to read, as file:name below src/glassformer.
    """

    name: str
    look_at: tuple[str, ...]
    measure: Callable[..., Numbers]
    judge: Callable[[Numbers], Verdict]
    draw: Callable[[Numbers, ExperimentTexts], Chart]
    takes_model: bool = False  # whether measure takes a saved model instead of one of its own
    n_seeds: int = 1  # runs, each with its own seed; at least 3 where something is trained

    @property
    def places(self) -> list[tuple[str, str]]:
        """What to read: a file below src/glassformer, and a function or class in it."""
        return [(file, name) for file, _, name in (each.partition(":") for each in self.look_at)]
