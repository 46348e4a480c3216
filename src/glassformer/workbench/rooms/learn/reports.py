"""What the grader says, in plain values: sentences with their code, cases, tables of numbers."""

import math
import re
from collections.abc import Mapping
from typing import Any

from glassformer.languages import Language
from glassformer.render.numbers import format_numbers
from glassformer.school.practice import Exercise, GradingReport
from glassformer.school.practice.prose import read_prose
from glassformer.school.practice.report_texts import checklist, describe_report

_MARKS = re.compile(r"(`[^`\n]+`|\*\*[^*\n]+\*\*)")


def tell_report(report: GradingReport, exercise: Exercise, language: Language) -> dict[str, Any]:
    """A report in one language."""
    then = exercise.brief(language.code).then if report.passed else ""
    said = {"sentences": [], "where": "", "seen": ""}
    if not report.passed:
        described = describe_report(report, exercise, language)
        said = {
            "sentences": [plain_passages(sentence) for sentence in described.sentences],
            "where": described.where,
            "seen": described.seen,
        }
    cases = checklist(report, exercise, language)
    return {
        **said,
        "cases": [{"label": label, "held": held} for label, held in cases],
        "then": plain_passages(then) if then else [],
    }


def plain_passages(text: str) -> list[dict[str, Any]]:
    """Paragraphs, lists and code, line by line.

    >>> plain_passages("Use `@`.")[0]["lines"][0][1]
    {'kind': 'code', 'text': '@'}
    """
    return [
        {
            "kind": kind,
            "lines": [
                [{"kind": "code", "text": line}]
                if kind == "code"
                else _plain_line(line[2:] if kind == "items" else line)
                for line in lines
            ],
        }
        for kind, lines in read_prose(text)
    ]


def _plain_line(line: str) -> list[dict[str, str]]:
    found = []
    for part in filter(None, _MARKS.split(line)):
        if _MARKS.fullmatch(part):
            kind = "code" if part.startswith("`") else "strong"
            found.append({"kind": kind, "text": part.strip("`" if kind == "code" else "*")})
        else:
            found.append({"kind": "plain", "text": part})
    return found


def plain_table(tables: Mapping[str, Any]) -> dict[str, Any]:
    """Expected numbers and the learner's, written alike, and which of them differ."""
    expected, yours = ([[float(cell) for cell in row] for row in tables[n]] for n in _BOTH)
    n = len(tables["columns"])
    flat = [cell for table in (expected, yours) for row in table for cell in row]
    shown = format_numbers(flat)
    lines = [shown[i : i + n] for i in range(0, len(shown), n)]
    wrong = [
        [not _is_near(a, b) for a, b in zip(*rows, strict=True)]
        for rows in zip(expected, yours, strict=True)
    ]
    return {
        "rows": [""] * len(expected) if tables["flat"] else [str(i) for i in tables["rows"]],
        "columns": [str(j) for j in tables["columns"]],
        "expected": lines[: len(expected)],
        "yours": lines[len(expected) :],
        "is_wrong": wrong,
    }


_BOTH = ("expected", "yours")


def _is_near(a: float, b: float) -> bool:
    """As far as one can see; the grader has compared exactly."""
    if math.isnan(a) or math.isnan(b):
        return math.isnan(a) and math.isnan(b)
    return a == b or math.isclose(a, b, rel_tol=1e-4, abs_tol=1e-6)


def plain_measurements(report: GradingReport) -> dict[str, str]:
    """What was measured, as it is written."""
    return {
        name: f"{value:.4g}".replace("-", "−") if isinstance(value, float) else str(value)
        for name, value in (report.measured or {}).items()
    }
