"""What a certificate rests on: files graded now, capstones run now, and what progress recorded."""

import platform
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from importlib.metadata import version
from typing import Any

import glassformer
from glassformer.languages import Language
from glassformer.school.classroom.hand_in import hash_exercise, hash_source
from glassformer.school.lab import SECONDS, ExperimentTexts
from glassformer.school.learn.listing import ListedChapter, list_chapters
from glassformer.school.practice import Exercise
from glassformer.school.practice.capstone.capstone_report import YOURS, CapstoneReport
from glassformer.school.practice.capstone.parts import TRACKS
from glassformer.school.practice.grading import Grader
from glassformer.school.practice.report_texts import checklist
from glassformer.school.practice.workspace import Workspace
from glassformer.school.progress import ExperimentRun, ProgressStore


@dataclass(frozen=True, kw_only=True, slots=True)
class ProvedExercise:
    """An exercise whose file passed when the certificate was made."""

    exercise: Exercise
    checks: tuple[str, ...]  # that held, as the learner sees them
    sha256: str  # of the learner's file
    version: str  # a hash of the exercise
    hints: int  # recorded
    day: str | None  # on which it first passed, recorded


@dataclass(frozen=True, kw_only=True, slots=True)
class Certificate:
    """Everything that the page says."""

    name: str
    day: date
    proved: tuple[ProvedExercise, ...]
    n_failed: int  # files that were tried and do not pass
    capstones: tuple[CapstoneReport, ...]
    chapters: tuple[ListedChapter, ...]  # with questions answered, recorded
    experiments: tuple[tuple[str, ExperimentRun], ...]  # titles, recorded
    versions: Mapping[str, str]
    isolation: tuple[str, ...]


def collect_proof(
    name: str,
    exercises: Sequence[Exercise],
    workspace: Workspace,
    *,
    practice: ProgressStore,
    learning: ProgressStore,
    grader: Grader,
    run_capstone: Callable[[str], CapstoneReport],
    language: Language,
    progress: Callable[[int], None] = lambda _: None,
) -> Certificate:
    """Grade every file that was tried, and run every capstone that the learner has run before."""
    proved, n_failed, isolation = [], 0, ()
    for n, exercise in enumerate(exercises):
        progress(n)
        source = workspace.read(exercise)
        if source is None or not workspace.has_try(exercise):
            continue
        report = grader.grade_source(exercise, source, workspace.file(exercise))
        isolation = report.isolation or isolation
        if not report.passed:
            n_failed += 1
            continue
        proved.append(
            ProvedExercise(
                exercise=exercise,
                checks=tuple(label for label, _ in checklist(report, exercise, language)),
                sha256=hash_source(source),
                version=hash_exercise(exercise),
                hints=practice.hints.get(exercise.name, 0),
                day=practice.days.get(exercise.name),
            )
        )
    progress(len(exercises))
    capstones = [run_capstone(track) for track in TRACKS if practice.capstone.get(track)]
    return Certificate(
        name=name,
        day=date.today(),
        proved=tuple(proved),
        n_failed=n_failed,
        capstones=tuple(each for each in capstones if each.is_equal and each.select(YOURS)),
        chapters=tuple(each for each in list_chapters(learning, language) if each.answered),
        experiments=tuple(
            (ExperimentTexts(each, language).title, learning.experiments[each])
            for each in SECONDS
            if each in learning.experiments
        ),
        versions={
            "glassformer": glassformer.__version__,
            "torch": version("torch"),
            "Python": platform.python_version(),
        },
        isolation=isolation,
    )


def describe_certificate(certificate: Certificate, language: Language) -> dict[str, Any]:
    """A certificate as plain values."""
    return {
        "name": certificate.name,
        "day": certificate.day.isoformat(),
        "graded_now": [
            {
                "exercise": each.exercise.name,
                "title": each.exercise.brief(language.code).title,
                "checks": list(each.checks),
                "file_sha256": each.sha256,
                "exercise_sha256": each.version,
                "hints": each.hints,
                "first_passed": each.day,
            }
            for each in certificate.proved
        ],
        "failed_now": certificate.n_failed,
        "capstones_run_now": [
            {
                "path": each.track.name,
                "model": each.model,
                "text": each.text,
                "wrote": each.library.text,
                "own_parts": each.select(YOURS),
                "parts": len(each.parts),
            }
            for each in certificate.capstones
        ],
        "recorded": {
            "questions": [
                {"chapter": each.name, "answered": each.answered, "of": each.questions}
                for each in certificate.chapters
            ],
            "experiments": [
                {"title": title, "day": run.day, "size": run.size, "outcome": run.outcome}
                for title, run in certificate.experiments
            ],
        },
        "versions": dict(certificate.versions),
        "isolation": list(certificate.isolation),
    }
