"""The outcome of one call: a value, or how it failed."""

from dataclasses import dataclass
from typing import Any

from glassformer.school.practice.cases import Case
from glassformer.school.practice.comparison import find_difference
from glassformer.school.practice.plain_values import Value, as_data

FAILURES = ("", "raised", "changed", "large")


@dataclass(frozen=True, slots=True)
class Outcome:
    """A value, or a failure: its kind, what was said, and the line of the learner's file."""

    value: Value | None = None
    failure: str = ""  # one of FAILURES
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


def outcomes_agree(case: Case, one: Outcome, other: Outcome) -> bool:
    """Whether two pieces of code did the same in a case."""
    if one.value is None or other.value is None:
        return (one.failure, one.error) == (other.failure, other.error)
    return values_agree(case, one.value, other.value)


def is_same_mistake(case: Case, one: Outcome, other: Outcome) -> bool:
    """Whether two pieces of code did the same, to the words of an error: it carries the sizes."""
    return outcomes_agree(case, one, other) and (
        one.value is not None or one.message == other.message
    )


def is_telling(case: Case, expected: Outcome, got: Outcome) -> bool:
    """Whether a wrong outcome has numbers or a form of its own, and not only errors and NaN."""
    if expected.value is None or got.value is None:
        return False
    found = find_difference(
        expected.value, got.value, names=case.names, tolerance=case.tolerance, loose=case.loose
    )
    return found is not None and found.what != "nan"


def is_comparable(expected: Outcome, got: Outcome) -> bool:
    """Whether a result has at least the form that it should have: containers, shapes, kinds."""
    if expected.value is None or got.value is None:
        return False
    return expected.value.form == got.value.form


def values_agree(case: Case, one: Value, other: Value) -> bool:
    """Whether two values are the same, as exactly as a case asks for."""
    found = find_difference(
        one, other, names=case.names, tolerance=case.tolerance, loose=case.loose
    )
    return found is None
