"""Proof that exercises work: stubs fail, solutions pass, every fault is named as itself."""

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from queue import SimpleQueue
from time import perf_counter

from glassformer.languages import CODES
from glassformer.school.practice.exercise import Exercise
from glassformer.school.practice.grading import Grader, GradingError
from glassformer.school.practice.report import Finding, Report
from glassformer.school.practice.report_texts import case_names

_LEAST_FAULTS = 3


@dataclass(frozen=True, kw_only=True, slots=True)
class Verdict:
    """What is wrong with one exercise; nothing, if it is as it must be."""

    exercise: str
    n_faults: int
    seconds: float
    problems: tuple[Finding, ...]


def verify(
    exercises: Sequence[Exercise],
    *,
    n_graders: int = 2,
    progress: Callable[[Verdict], None] | None = None,
) -> list[Verdict]:
    """Verify exercises side by side; `progress` hears of each as it is done."""
    graders: SimpleQueue[Grader] = SimpleQueue()
    n_graders = max(1, min(n_graders, len(exercises)))
    for _ in range(n_graders):
        graders.put(Grader())

    def one(exercise: Exercise) -> Verdict:
        grader = graders.get()
        try:
            verdict = verify_one(exercise, grader)
        finally:
            graders.put(grader)
        if progress is not None:
            progress(verdict)
        return verdict

    try:
        with ThreadPoolExecutor(n_graders) as pool:
            return list(pool.map(one, exercises))
    finally:
        for _ in range(n_graders):
            graders.get().close()


def verify_one(exercise: Exercise, grader: Grader) -> Verdict:
    """Everything that must hold of one exercise."""
    begun = perf_counter()
    faults = exercise.faults()
    problems = _texts(exercise)
    if len(faults) < _LEAST_FAULTS:
        problems.append(Finding("practice.verify.few", {"n": len(faults)}))
    try:
        problems += _graded(exercise, grader)
    except GradingError as error:
        problems.append(Finding("practice.verify.solution", {"why": str(error)}))
    return Verdict(
        exercise=exercise.name,
        n_faults=len(faults),
        seconds=perf_counter() - begun,
        problems=tuple(problems),
    )


def _texts(exercise: Exercise) -> list[Finding]:
    tasks = [exercise.task(code) for code in CODES]
    problems = []
    if len({len(task.hints) for task in tasks}) > 1 or not tasks[0].hints:
        counts = " / ".join(str(len(task.hints)) for task in tasks)
        problems.append(Finding("practice.verify.texts", {"why": f"hints: {counts}"}))
    if not all(task.title and task.text and task.then for task in tasks):
        problems.append(Finding("practice.verify.texts", {"why": "title, text, Then"}))
    return problems


def _graded(exercise: Exercise, grader: Grader) -> list[Finding]:
    problems = []
    stub = grader.grade_source(exercise, exercise.stub)
    if stub.passed:
        problems.append(Finding("practice.verify.stub"))
    if exercise.planted is not None and stub.faults != (exercise.planted,):
        values = {"fault": exercise.planted, "got": _seen_as(stub)}
        problems.append(Finding("practice.verify.planted", values))
    solution = grader.grade_source(exercise, exercise.solution)
    if not solution.passed:
        problems.append(Finding("practice.verify.solution", {"why": _seen_as(solution)}))
    for case in {each.name for each in solution.checked} - case_names(exercise):
        problems.append(Finding("practice.verify.case", {"case": case}))
    for fault in exercise.faults():
        report = grader.grade_source(exercise, fault.source)
        if report.passed:
            problems.append(Finding("practice.verify.caught", {"fault": fault.name}))
        elif report.faults != (fault.name,):
            values = {"fault": fault.name, "got": _seen_as(report)}
            problems.append(Finding("practice.verify.named", values))
    return problems


def _seen_as(report: Report) -> str:
    if report.faults:
        return " + ".join(report.faults)
    finding = "" if report.finding is None else f": {dict(report.finding.values)}"
    return f"{report.kind}{finding}"
