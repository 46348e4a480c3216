"""Which sentence fits what was found."""

from glassformer.school.practice.comparison import Difference
from glassformer.school.practice.outcome import Outcome
from glassformer.school.practice.report import Finding


def failure_finding(outcome: Outcome) -> Finding:
    """In which way a call failed."""
    match outcome.failure:
        case "changed":
            return Finding("practice.found.changed", {"name": outcome.message})
        case "large":
            return Finding("practice.found.large")
        case _:
            values = {"error": outcome.error, "message": outcome.message}
            return Finding("practice.found.raised", values)


def difference_finding(found: Difference, *, hidden: bool) -> Finding:
    """How a result differs; `hidden` if the right numbers must not be shown."""
    values = {"path": found.path, "expected": found.expected, "got": found.got}
    cell = f"{found.path}[{', '.join(map(str, found.place))}]" if found.place else found.path
    if hidden:
        return _hint_finding(found, cell)
    match found.what:
        case "shape":
            return Finding("practice.found.shape", values)
        case "type":
            return Finding("practice.found.type", values)
        case "keys" if not found.got:
            return Finding("practice.found.nokeys", values)
        case "keys":
            return Finding("practice.found.keys", values)
        case "entries":
            return Finding("practice.found.entries", values)
        case "dtype":
            return Finding("practice.found.dtype", values)
        case "text":
            return Finding("practice.found.text", values)
    counts = {"wrong": found.n_wrong, "all": found.n_all}
    if found.what == "nan":
        return Finding("practice.found.nan", {"cell": cell, **counts})
    del values["path"]
    return Finding("practice.found.value", {"cell": cell, "off": found.off, **counts, **values})


def _hint_finding(found: Difference, cell: str) -> Finding:
    """The same without giving the answer away."""
    match found.what:
        case "shape":
            return Finding("practice.found.count", {"path": found.path, "got": found.got})
        case "type" | "keys" | "entries":
            return Finding("practice.found.kind", {"path": found.path, "got": found.got})
        case "value" if found.off.startswith("−"):
            return Finding("practice.found.small", {"cell": cell, "got": found.got})
        case "value":
            return Finding("practice.found.big", {"cell": cell, "got": found.got})
        case _:
            return Finding("practice.found.otherwise", {"path": cell, "got": found.got})
