"""Proof that exercises work: stubs fail, solutions pass, every fault is named as itself."""

from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from queue import SimpleQueue
from time import perf_counter

from glassformer.languages import CODES
from glassformer.school.practice.exercise import Exercise
from glassformer.school.practice.grading import Grader, GradingError, draw_seed
from glassformer.school.practice.report import SOLUTION, STUB, Finding, GradingReport
from glassformer.school.practice.report_texts import case_names

_LEAST_FAULTS = 3
N_SEEDS = 3


@dataclass(frozen=True, kw_only=True, slots=True)
class ExerciseVerdict:
    """What is wrong with one exercise; nothing, if it is as it must be."""

    exercise: str
    n_faults: int
    seconds: float
    problems: tuple[Finding, ...]
    failed_seeds: tuple[int, ...] = ()  # with whose inputs something was not as it must be


def verify(
    exercises: Sequence[Exercise],
    *,
    seeds: Sequence[int] | None = None,
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
            verdict = verify_one(exercise, grader, seeds=seeds)
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


def verify_one(
    exercise: Exercise, grader: Grader, *, seeds: Sequence[int] | None = None
) -> ExerciseVerdict:
    """Everything that must hold of one exercise, with the inputs of some seeds.

    Stub and solution are graded as a learner's file is. Faults are tried in one process, and with
    every seed: one that passes only now and then would let a wrong file pass now and then.
    """
    begun = perf_counter()
    seeds = draw_seeds() if seeds is None else seeds
    n_faults, failed_seeds = len(exercise.faults()), set[int]()
    problems = _check_texts(exercise)
    if n_faults < _LEAST_FAULTS:
        problems.append(Finding("practice.verify.few", {"n": n_faults}))
    try:
        for problem, failed in _check_grading(exercise, grader, seeds):
            problems.append(problem)
            failed_seeds.update(failed)
    except GradingError as error:
        problems.append(Finding("practice.verify.solution", {"why": str(error)}))
        failed_seeds.update(seeds)
    return ExerciseVerdict(
        exercise=exercise.name,
        n_faults=n_faults,
        seconds=perf_counter() - begun,
        problems=tuple(problems),
        failed_seeds=tuple(sorted(failed_seeds)),
    )


def draw_seeds(n: int = N_SEEDS) -> tuple[int, ...]:
    """Seeds for one verification; others every time."""
    return tuple(draw_seed() for _ in range(n))


def _check_texts(exercise: Exercise) -> list[Finding]:
    briefs = [exercise.brief(code) for code in CODES]
    problems = []
    if len({len(brief.hints) for brief in briefs}) > 1 or not briefs[0].hints:
        counts = " / ".join(str(len(brief.hints)) for brief in briefs)
        problems.append(Finding("practice.verify.texts", {"why": f"hints: {counts}"}))
    if not all(brief.title and brief.text and brief.then for brief in briefs):
        problems.append(Finding("practice.verify.texts", {"why": "title, text, Then"}))
    return problems


def _check_grading(
    exercise: Exercise, grader: Grader, seeds: Sequence[int]
) -> Iterator[tuple[Finding, Sequence[int]]]:
    """What is wrong, each with the seeds that show it."""
    stub = grader.grade_source(exercise, exercise.stub, seed=seeds[0])
    if stub.passed:
        yield Finding("practice.verify.stub"), seeds[:1]
    solution = grader.grade_source(exercise, exercise.solution, seed=seeds[0])
    for case in {each.name for each in solution.checked} - case_names(exercise):
        yield Finding("practice.verify.case", {"case": case}), ()
    reports = defaultdict[str, dict[int, GradingReport]](dict)
    if solution.kind != "needs":  # without its packages no fault runs either
        tried = grader.try_faults(exercise, seeds)
        for trial in tried.trials:
            reports[trial.subject][trial.seed] = trial.report
        if (last := tried.stopped) is not None:
            values = {"name": last.subject, "why": _summarize(last.report)}
            yield Finding("practice.verify.stopped", values), (last.seed,)
    reports[SOLUTION][seeds[0]] = solution
    if exercise.planted is not None:
        reports[STUB][seeds[0]] = stub
    for subject, by_seed in reports.items():
        yield from _check_reports(exercise, subject, by_seed)


def _check_reports(
    exercise: Exercise, subject: str, reports: Mapping[int, GradingReport]
) -> Iterator[tuple[Finding, Sequence[int]]]:
    """What is wrong with one source, given its reports by seed."""
    passed = [seed for seed, report in reports.items() if report.passed]
    others = [seed for seed in reports if seed not in passed]
    if subject == SOLUTION:
        if others:
            values = {"why": _summarize(reports[others[0]])}
            yield Finding("practice.verify.solution", values), others
        return
    fault, key = subject, "practice.verify.named"
    if subject == STUB and exercise.planted is not None:
        fault, key, others, passed = exercise.planted, "practice.verify.planted", [*reports], []
    if passed:
        yield Finding("practice.verify.caught", {"fault": fault, "seeds": _join(passed)}), passed
    if wrong := [seed for seed in others if reports[seed].faults != (fault,)]:
        got = _summarize(reports[wrong[0]])
        yield Finding(key, {"fault": fault, "got": got, "seeds": _join(wrong)}), wrong


def _join(seeds: Sequence[int]) -> str:
    return ", ".join(map(str, seeds))


def _summarize(report: GradingReport) -> str:
    if report.faults:
        return " + ".join(report.faults)
    finding = "" if report.finding is None else f": {dict(report.finding.values)}"
    return f"{report.kind}{finding}"
