"""How often practice names a mistake: wrong and right submissions, graded one after the other.

    python benchmarks/naming.py --set benchmarks/mistakes [--exercise attention] [--json FILE]

A set is a folder FOLDER/EXERCISE/ANYTHING.py; the first line of a file says what it is:

    # mistake: the scores are multiplied by √D
    # correct: einsum instead of @

What is printed for every wrong file is the mistake in the words of its author and, below it, the
sentence of the grader: whether a name is a false one, only a person can judge. `named` are known
faults and what was worked out; `stated` are findings that are the mistake themselves (an input
changed in place, a forbidden call, an error that Python explains). The command fails if a right
file is rejected or a wrong one passes.
"""

import argparse
import json
import sys
from collections import Counter
from dataclasses import asdict, dataclass
from pathlib import Path

from glassformer.languages import Language
from glassformer.school.practice import GradingReport, find_exercise
from glassformer.school.practice.grading import Grader
from glassformer.school.practice.report_texts import describe_report

# Findings that leave nothing to name.
STATED = ("changed", "forbidden", "required", "missing", "nothing", "syntax", "choice", "empty")
LABELS = ("mistake", "correct")


@dataclass(frozen=True, slots=True)
class Verdict:
    """One file: what its author says, and what the grader says."""

    exercise: str
    file: str
    label: str  # one of LABELS
    about: str
    outcome: str  # named, stated, unnamed, withheld, passed; rejected for a right file
    sentences: tuple[str, ...]
    where: str
    case: str | None


def read_label(source: str, path: Path) -> tuple[str, str]:
    """Whether a file is wrong or right, and what its author says about it."""
    label, colon, about = source.partition("\n")[0].removeprefix("#").partition(":")
    if label.strip() not in LABELS or not colon:
        raise SystemExit(f"{path} must begin with '# mistake: …' or '# correct: …'.")
    return label.strip(), about.strip()


def name_outcome(label: str, report: GradingReport) -> str:
    """Which of the outcomes a report is."""
    if report.passed:
        return "passed"
    if label == "correct":
        return "rejected"
    if report.names_mistake:
        return "named"
    if report.faults and not report.names_faults:
        return "withheld"  # the planted fault of an exercise to repair
    return "stated" if report.kind in STATED else "unnamed"


def grade_file(grader: Grader, path: Path, language: Language) -> Verdict:
    source = path.read_text("utf-8")
    label, about = read_label(source, path)
    exercise = find_exercise(path.parent.name)
    report = grader.grade_source(exercise, source, Path(exercise.file_name))
    said = None if report.passed else describe_report(report, exercise, language)
    return Verdict(
        exercise=exercise.name,
        file=path.name,
        label=label,
        about=about,
        outcome=name_outcome(label, report),
        sentences=() if said is None else said.sentences,
        where="" if said is None else said.where,
        case=report.case,
    )


def print_verdict(verdict: Verdict) -> None:
    print(f"{verdict.outcome:9} {verdict.exercise}/{verdict.file}: {verdict.about}")
    for sentence in verdict.sentences:
        print(f"          → {sentence}")
    if verdict.where:
        print(f"            {verdict.where} ({verdict.case})")


def print_summary(verdicts: list[Verdict]) -> int:
    counts = Counter((verdict.label, verdict.outcome) for verdict in verdicts)
    n_wrong = sum(count for (label, _), count in counts.items() if label == "mistake")
    n_right = len(verdicts) - n_wrong
    kinds = ("named", "stated", "withheld", "unnamed", "passed")
    shown = ", ".join(f"{counts['mistake', kind]} {kind}" for kind in kinds)
    share = counts["mistake", "named"] / n_wrong if n_wrong else 0.0
    print(f"\n{n_wrong} wrong files: {shown}; named: {share:.0%}")
    print(f"{n_right} right files: {counts['correct', 'rejected']} rejected")
    return counts["correct", "rejected"] + counts["mistake", "passed"]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--set", type=Path, required=True, help="folder of submissions")
    parser.add_argument("--exercise", help="only this exercise")
    parser.add_argument("--only", help="print only files with this outcome")
    parser.add_argument("--lang", default="en", choices=("en", "zh"))
    parser.add_argument("--json", type=Path, help="write all verdicts to a file")
    options = parser.parse_args()
    paths = sorted(options.set.glob(f"{options.exercise or '*'}/*.py"))
    if not paths:
        raise SystemExit(f"{options.set} must hold files EXERCISE/ANYTHING.py; none were found.")
    language, verdicts = Language(options.lang), []
    with Grader() as grader:
        for path in paths:
            verdicts.append(grade_file(grader, path, language))
            if options.only in (None, verdicts[-1].outcome):
                print_verdict(verdicts[-1])
    if options.json is not None:
        rows = [asdict(verdict) for verdict in verdicts]
        options.json.write_text(json.dumps(rows, ensure_ascii=False, indent=2), "utf-8")
    return 1 if print_summary(verdicts) else 0


if __name__ == "__main__":
    sys.exit(main())
