"""The report of a file that did not run to its end; needs no torch, for it is read before torch."""

from typing import Any

from glassformer.school.practice.exercise import Exercise
from glassformer.school.practice.report import CheckResult, Finding, GradingReport

_PLAIN = {
    "memory": "practice.found.memory",
    "output": "practice.found.output",
    "exit": "practice.found.exit",
    "interfered": "practice.found.interfered",
}
_BLOCKED = {
    "files": "practice.found.files",
    "solutions": "practice.found.solutions",
    "processes": "practice.found.processes",
    "network": "practice.found.network",
}


def stop_finding(exercise: Exercise, stop: dict[str, Any]) -> Finding:
    """Why a file did not run to its end."""
    message = stop.get("message", "")
    match stop["stop"]:
        case "memory" | "output" | "exit" | "interfered" as plain:
            return Finding(_PLAIN[plain])
        case "blocked":
            return Finding(_BLOCKED[message])
        case "syntax":
            return Finding("practice.found.syntax", {"message": message})
        case "forbidden":
            return Finding("practice.found.forbidden", {"name": message})
        case "replaced":
            return Finding("practice.found.replaced", {"name": message})
        case "switched":
            return Finding("practice.found.switched", {"name": message})
        case "required":
            return Finding("practice.found.required", {"name": message})
        case "missing":
            names = ", ".join(stop.get("names", [])) or "–"
            return Finding("practice.found.missing", {"name": message, "names": names})
        case "import":
            return Finding("practice.found.import", {"error": stop["error"], "message": message})
        case "raised":
            return Finding("practice.found.raised", {"error": stop["error"], "message": message})
        case "time":
            return Finding("practice.found.time", {"seconds": f"{exercise.seconds:g}"})
        case _:
            return _outside_finding(stop["stop"], message, exercise)


def _outside_finding(kind: str, message: str, exercise: Exercise) -> Finding:
    match kind:
        case "unreadable":
            return Finding("practice.found.unreadable", {"message": message})
        case "absent":
            return Finding("practice.found.absent", {"file": message, "name": exercise.name})
        case "needs":
            return Finding("practice.found.needs", {"names": message})
        case _:
            return Finding("practice.found.died", {"how": message or "–"})


def report_stop(
    exercise: Exercise,
    stop: dict[str, Any],
    checked: tuple[CheckResult, ...] = (),
    case: str | None = None,
) -> GradingReport:
    """The report of a file that did not run to its end."""
    return GradingReport(
        exercise=exercise.name,
        passed=False,
        kind=stop["stop"],
        checked=checked,
        case=case,
        finding=stop_finding(exercise, stop),
        line=stop.get("line"),
    )
