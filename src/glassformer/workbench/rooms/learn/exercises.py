"""Exercises: the learner's text, a check by the terminal's grader, hints, solutions."""

from contextlib import suppress
from typing import Any

from glassformer.errors import ConfigError
from glassformer.languages import CODES, Language
from glassformer.school.learn.plain_blocks import plain_code
from glassformer.school.practice import Exercise, GradingReport
from glassformer.school.practice.exercise import UnknownExercise, find_exercise
from glassformer.school.practice.report_texts import describe_unknown
from glassformer.school.practice.session import (
    Event,
    Graded,
    Key,
    PracticeSession,
    count_hints_read,
)
from glassformer.school.practice.workspace import Workspace
from glassformer.school.progress import ProgressStore
from glassformer.workbench.jobs import Progress
from glassformer.workbench.memory import Memory
from glassformer.workbench.rooms.learn.course_map import describe_exercise as describe_entry
from glassformer.workbench.rooms.learn.grading_thread import run_with_grader
from glassformer.workbench.rooms.learn.records import open_practice, open_workspace, save_progress
from glassformer.workbench.rooms.learn.reports import (
    plain_measurements,
    plain_passages,
    plain_table,
    tell_report,
)
from glassformer.workbench.wire.learn import ExerciseSaveRequest, PartRequest


def describe_exercise(asked: PartRequest, _memory: Memory, _progress: Progress) -> dict[str, Any]:
    """An exercise as the learner has left it."""
    language = Language(asked.lang)
    exercise, workspace = _find(asked.name, language), open_workspace(language)
    practice = open_practice(language)
    saved = workspace.read(exercise)
    entry = describe_entry(exercise, practice, language)
    return {
        **entry,
        "text": plain_passages(exercise.brief(language.code).text),
        "file": str(workspace.file(exercise)),
        "source": workspace.initial_text(exercise) if saved is None else saved,
        "is_saved": saved is not None,
        **_list_hints(exercise, practice, language),
        "solution": _show_solution(exercise, workspace, practice),
        "missing": exercise.missing_packages(),
    }


def save_exercise(
    asked: ExerciseSaveRequest, _memory: Memory, _progress: Progress
) -> dict[str, Any]:
    """Keep the learner's text where `glassformer practice` finds it."""
    language = Language(asked.lang)
    exercise, workspace = _find(asked.name, language), open_workspace(language)
    try:
        return {"kept": _save(exercise, workspace, asked)}
    except OSError as error:
        raise ConfigError(_say_unwritten(exercise, language, error)) from None


def check_exercise(
    asked: ExerciseSaveRequest, _memory: Memory, progress: Progress
) -> dict[str, Any]:
    """Keep the text, run it, and name the mistake; what cannot be kept is graded all the same."""
    language = Language(asked.lang)
    exercise, workspace = _find(asked.name, language), open_workspace(language)
    kept, notice = None, ""
    try:
        kept = _save(exercise, workspace, asked)
    except OSError as error:
        notice = _say_unwritten(exercise, language, error)
    file = workspace.file(exercise)
    report = run_with_grader(
        lambda grader: grader.grade_source(exercise, asked.source, file), lambda: progress(0.0)
    )
    session = _record(exercise, language, Graded(report))
    return {
        "is_passed": report.passed,
        "kind": report.kind,
        "line": report.line,
        "said": {code: tell_report(report, exercise, Language(code)) for code in CODES},
        **_tell_numbers(report),
        "kept": kept,
        "notice": notice or session.notice,
        "solution": _show_solution(exercise, workspace, session.progress),
    }


def give_hint(asked: PartRequest, _memory: Memory, _progress: Progress) -> dict[str, Any]:
    """One more hint, and those before it."""
    language = Language(asked.lang)
    exercise = _find(asked.name, language)
    session = _record(exercise, language, Key("h"))
    if session.unsaved:
        raise ConfigError(session.notice)
    return _list_hints(exercise, session.progress, language)


def reset_exercise(asked: PartRequest, _memory: Memory, _progress: Progress) -> dict[str, Any]:
    """Begin again; the learner's version is kept in old/."""
    language = Language(asked.lang)
    exercise, workspace = _find(asked.name, language), open_workspace(language)
    try:
        kept = workspace.reset(exercise)
    except OSError as error:
        raise ConfigError(_say_unwritten(exercise, language, error)) from None
    practice = open_practice(language)
    practice.passed.discard(exercise.name)
    save_progress(practice, language)
    return {
        "source": workspace.initial_text(exercise),
        "kept": None if kept is None else f"old/{kept.name}",
    }


def _record(exercise: Exercise, language: Language, event: Event) -> PracticeSession:
    """The book-keeping of the terminal, for one event; what it could not write, it says."""
    workspace = open_workspace(language)
    with suppress(OSError):
        workspace.folder.mkdir(parents=True, exist_ok=True)
    session = PracticeSession(
        exercises=[exercise],
        workspace=workspace,
        progress=open_practice(language),
        language=language,
    )
    session.handle(event)
    return session


def _find(name: str, language: Language) -> Exercise:
    try:
        return find_exercise(name)
    except UnknownExercise as error:
        raise ConfigError(describe_unknown(error, language)) from None


def _save(exercise: Exercise, workspace: Workspace, asked: ExerciseSaveRequest) -> str | None:
    kept = workspace.save(exercise, asked.source, was=asked.was)
    return None if kept is None else f"old/{kept.name}"


def _say_unwritten(exercise: Exercise, language: Language, error: OSError) -> str:
    reason = error.strerror or str(error)
    return language.say("practice.notice.readonly", file=exercise.file_name, reason=reason)


def _list_hints(exercise: Exercise, practice: ProgressStore, language: Language) -> dict[str, Any]:
    brief = exercise.brief(language.code)
    read = count_hints_read(practice, exercise, brief)
    return {
        "hints": [plain_passages(hint) for hint in brief.hints[:read]],
        "n_hints": len(brief.hints),
    }


def _show_solution(
    exercise: Exercise, workspace: Workspace, practice: ProgressStore
) -> list[tuple[str, str]] | None:
    """The solution, once the learner has passed or tried."""
    if exercise.name in practice.passed or workspace.has_try(exercise):
        return plain_code(exercise.solution)
    return None


def _tell_numbers(report: GradingReport) -> dict[str, Any]:
    return {
        "table": None if report.tables is None else plain_table(report.tables),
        "measured": plain_measurements(report),
        "printed": report.printed,
        "seconds": round(report.seconds, 2),
        "isolation": list(report.isolation),
    }
