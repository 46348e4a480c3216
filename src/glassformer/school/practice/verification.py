"""Proof that exercises work: stubs fail, solutions pass, every fault is named as itself."""

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from queue import SimpleQueue
from time import perf_counter

from glassformer.languages import CODES
from glassformer.school.practice.exercise import Exercise
from glassformer.school.practice.grading import Grader, GradingError
from glassformer.school.practice.report import Finding, GradingReport
from glassformer.school.practice.report_texts import case_names

_LEAST_FAULTS = 3


@dataclass(frozen=True, kw_only=True, slots=True)
class ExerciseVerdict:
    """What is wrong with one exercise; nothing, if it is as it must be."""

    exercise: str
    n_faults: int
    seconds: float
    problems: tuple[Finding, ...]


def verify(
    exercises: Sequence[Exercise],
    *,
    n_graders: int = 2,
    progress: Callable[[ExerciseVerdict], None] | None = None,
) -> list[ExerciseVerdict]:
    """Verify exercises side by side; `progress` hears of each as it is done."""
    graders: SimpleQueue[Grader] = SimpleQueue()
    n_graders = max(1, min(n_graders, len(exercises)))
    for _ in range(n_graders):
        graders.put(Grader())

    def one(exercise: Exercise) -> ExerciseVerdict:
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


def verify_one(exercise: Exercise, grader: Grader) -> ExerciseVerdict:
    """Everything that must hold of one exercise."""
    begun = perf_counter()
    faults = exercise.faults()
    problems = _check_texts(exercise)
    if len(faults) < _LEAST_FAULTS:
        problems.append(Finding("practice.verify.few", {"n": len(faults)}))
    try:
        problems += _check_grading(exercise, grader)
    except GradingError as error:
        problems.append(Finding("practice.verify.solution", {"why": str(error)}))
    return ExerciseVerdict(
        exercise=exercise.name,
        n_faults=len(faults),
        seconds=perf_counter() - begun,
        problems=tuple(problems),
    )


def _check_texts(exercise: Exercise) -> list[Finding]:
    briefs = [exercise.brief(code) for code in CODES]
    problems = []
    if len({len(brief.hints) for brief in briefs}) > 1 or not briefs[0].hints:
        counts = " / ".join(str(len(brief.hints)) for brief in briefs)
        problems.append(Finding("practice.verify.texts", {"why": f"hints: {counts}"}))
    if not all(brief.title and brief.text and brief.then for brief in briefs):
        problems.append(Finding("practice.verify.texts", {"why": "title, text, Then"}))
    return problems


def _check_grading(exercise: Exercise, grader: Grader) -> list[Finding]:
    problems = []
    stub = grader.grade_source(exercise, exercise.stub)
    if stub.passed:
        problems.append(Finding("practice.verify.stub"))
    if exercise.planted is not None and stub.faults != (exercise.planted,):
        values = {"fault": exercise.planted, "got": _summarize(stub)}
        problems.append(Finding("practice.verify.planted", values))
    solution = grader.grade_source(exercise, exercise.solution)
    if not solution.passed:
        problems.append(Finding("practice.verify.solution", {"why": _summarize(solution)}))
    for case in {each.name for each in solution.checked} - case_names(exercise):
        problems.append(Finding("practice.verify.case", {"case": case}))
    for fault in exercise.faults():
        report = grader.grade_source(exercise, fault.source)
        if report.passed:
            problems.append(Finding("practice.verify.caught", {"fault": fault.name}))
        elif report.faults != (fault.name,):
            values = {"fault": fault.name, "got": _summarize(report)}
            problems.append(Finding("practice.verify.named", values))
    return problems


def _summarize(report: GradingReport) -> str:
    if report.faults:
        return " + ".join(report.faults)
    finding = "" if report.finding is None else f": {dict(report.finding.values)}"
    return f"{report.kind}{finding}"
