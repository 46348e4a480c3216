"""The result of a grading as data: a text is a catalogue key with its values, not a sentence."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

SOLUTION, STUB = "solution.py", "stub.py"


@dataclass(frozen=True, slots=True)
class Finding:
    """One sentence: a key of the catalogues and what to fill in."""

    key: str
    values: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class CheckResult:
    """A case by its name, and whether it held; None if it was not reached."""

    name: str
    held: bool | None


@dataclass(frozen=True, kw_only=True, slots=True)
class GradingReport:
    """The grading of one file."""

    exercise: str
    passed: bool
    kind: str = "passed"
    checked: tuple[CheckResult, ...] = ()
    case: str | None = None  # the first that did not hold
    given: str = ""  # the shapes that went in
    finding: Finding | None = None
    faults: tuple[str, ...] = ()  # the known mistakes that do the same
    names_faults: bool = True  # whether to name them
    explained: tuple[Finding, ...] = ()  # the mistake, worked out where no known one does the same
    detail: Finding | None = None  # what the learner's own attention weights show
    line: int | None = None
    tables: Mapping[str, Any] | None = None  # expected, yours; numbers that may be drawn
    measured: Mapping[str, Any] | None = None
    printed: str = ""
    seconds: float = 0.0
    isolation: tuple[str, ...] = ()  # what shut the learner's process in; see `isolation`

    @property
    def names_mistake(self) -> bool:
        """Whether the report names the mistake, and not only where results differ."""
        return bool(self.explained) or (bool(self.faults) and self.names_faults)

    def as_data(self) -> dict[str, Any]:
        return asdict(self)

    @classmethod
    def from_data(cls, data: dict[str, Any]) -> "GradingReport":
        finding, detail = data["finding"], data["detail"]
        return cls(
            **{
                **data,
                "checked": tuple(CheckResult(**each) for each in data["checked"]),
                "faults": tuple(data["faults"]),
                "isolation": tuple(data["isolation"]),
                "explained": tuple(Finding(**each) for each in data["explained"]),
                "finding": None if finding is None else Finding(**finding),
                "detail": None if detail is None else Finding(**detail),
            }
        )


@dataclass(frozen=True, slots=True)
class FaultTrial:
    """What came of one source of an exercise with the inputs of one seed.

    `subject` is the name of a fault, or SOLUTION or STUB.
    """

    subject: str
    seed: int
    report: GradingReport


@dataclass(frozen=True, slots=True)
class FaultTrials:
    """All trials of an exercise; those before the process ended, if one of them ended it."""

    trials: tuple[FaultTrial, ...]
    stopped: FaultTrial | None = None
