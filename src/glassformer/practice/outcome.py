"""What came of one call: a value, or the way in which it failed."""

from dataclasses import dataclass
from typing import Any

from glassformer.practice.cases import Case
from glassformer.practice.compare import difference
from glassformer.practice.values import Value, as_data, from_data


@dataclass(frozen=True, slots=True)
class Outcome:
    """A value, or a failure: its kind, what was said, and the line of the learner's file."""

    value: Value | None = None
    failure: str = ""  # raised, changed, forbidden, blocked, large
    error: str = ""  # for raised, the name of the exception
    message: str = ""
    line: int | None = None

    def as_data(self) -> dict[str, Any]:
        return {
            "value": None if self.value is None else as_data(self.value),
            "failure": self.failure,
            "error": self.error,
            "message": self.message,
            "line": self.line,
        }

    @classmethod
    def from_data(cls, data: dict[str, Any]) -> "Outcome":
        value = None if data["value"] is None else from_data(data["value"])
        return cls(**{**data, "value": value})


def agree(case: Case, one: Outcome, other: Outcome) -> bool:
    """Whether two pieces of code did the same in a case."""
    if one.value is None or other.value is None:
        return (one.failure, one.error) == (other.failure, other.error)
    return (
        difference(
            one.value,
            other.value,
            names=case.names,
            tolerance=case.tolerance,
            loose=case.loose,
        )
        is None
    )
