"""The capstone: which parts of a model are the learner's own, and a run of the model they make.

The learner's files run as in a check, one by one and then joined, in the grader's isolated
processes; they are read from the practice folder alone, and the weights are those of an included
model. What is computed in this process is the library's own model.
"""

from typing import Any

from glassformer.errors import ConfigError, GlassformerError
from glassformer.languages import CODES, Language
from glassformer.models import Decoder, EncoderDecoder
from glassformer.models.checkpoints import load
from glassformer.school.practice.capstone.assembly import is_lent, run_capstone
from glassformer.school.practice.capstone.capstone_report import CapstoneReport, PartResult
from glassformer.school.practice.capstone.capstone_texts import (
    describe_counts,
    describe_mistake,
    describe_outcome,
    describe_state,
    describe_title,
)
from glassformer.school.practice.capstone.parts import TRACKS, TRANSLATOR
from glassformer.school.practice.exercise import find_exercise
from glassformer.school.practice.grading import Grader
from glassformer.school.practice.workspace import Workspace
from glassformer.school.progress import ProgressStore, Unsaved
from glassformer.workbench.jobs import Progress
from glassformer.workbench.memory import Memory
from glassformer.workbench.rooms.learn.grading_thread import run_with_grader
from glassformer.workbench.rooms.learn.records import (
    open_practice,
    open_workspace,
    practice_folder,
)
from glassformer.workbench.rooms.learn.reports import plain_passages
from glassformer.workbench.wire.capstone import CapstoneRequest, CapstoneRunRequest

_LANGUAGES = ["fr", "zh"]  # of the included translator


def describe_parts(asked: CapstoneRequest, _memory: Memory, _progress: Progress) -> dict[str, Any]:
    """The parts as the learner has left them; nothing is run."""
    language, track = Language(asked.lang), TRACKS[asked.path]
    workspace, practice = open_workspace(language), open_practice(language)
    return {
        "path": track.name,
        "model": track.model,
        "parts": [_describe_part(name, workspace, practice) for name in track.parts],
        "example": track.example,
        "languages": _LANGUAGES if track.name == TRANSLATOR else [],
        "folder": str(workspace.folder),
    }


def join_parts(asked: CapstoneRunRequest, _memory: Memory, progress: Progress) -> dict[str, Any]:
    """Grade each part, join them, and let the model write; the report is in every language."""
    language, track = Language(asked.lang), TRACKS[asked.path]
    if asked.to is not None and track.name != TRANSLATOR:
        raise ConfigError(language.say("practice.capstone.error.to"))
    if not asked.text.strip():
        raise ConfigError(language.say("practice.capstone.error.empty"))
    to = asked.to or (_LANGUAGES[0] if track.name == TRANSLATOR else None)
    workspace = open_workspace(language)
    n_done = 0

    def count(n: int) -> None:
        nonlocal n_done
        n_done = n

    def run(grader: Grader) -> CapstoneReport:
        # A model of its own: a run that was given up may still use it when the next job begins.
        model = load(track.model)
        assert isinstance(model, EncoderDecoder | Decoder)
        return run_capstone(model, track.name, asked.text, workspace, grader, to=to, progress=count)

    report = run_with_grader(
        run,
        lambda: progress(n_done / (len(track.parts) + 1)),  # the last is the joined model
    )
    return {
        "path": track.name,
        "text": asked.text,
        "to": to,
        "parts": [_describe_result(part) for part in report.parts],
        "written": None if report.joined is None else report.joined.text,
        "is_equal": report.is_equal,
        "is_complete": report.is_complete,
        "said": {code: _tell(report, Language(code)) for code in CODES},
        "seconds": round(report.seconds, 2),
        "isolation": list(report.isolation),
        "notice": _remember(report, language),
    }


def _describe_part(name: str, workspace: Workspace, practice: ProgressStore) -> dict[str, Any]:
    exercise = find_exercise(name)
    return {
        "name": name,
        "number": exercise.number,
        "title": exercise.brief(workspace.language.code).title,
        "file": exercise.file_name,
        "is_written": not is_lent(exercise, workspace),
        "is_passed": name in practice.passed,
    }


def _describe_result(part: PartResult) -> dict[str, Any]:
    exercise = find_exercise(part.part)
    return {
        "name": part.part,
        "number": exercise.number,
        "file": exercise.file_name,
        "state": part.state,
        "line": None if part.report is None else part.report.line,
    }


def _tell(report: CapstoneReport, language: Language) -> dict[str, Any]:
    return {
        "title": describe_title(report, language),
        "counts": describe_counts(report, language),
        "parts": [_tell_part(part, language) for part in report.parts],
        "outcome": list(describe_outcome(report, language)),
    }


def _tell_part(part: PartResult, language: Language) -> dict[str, Any]:
    sentences, where = describe_mistake(part, language)
    return {
        "title": find_exercise(part.part).brief(language.code).title,
        "state": describe_state(part, language),
        "sentences": [plain_passages(sentence) for sentence in sentences],
        "where": where,
    }


def _remember(report: CapstoneReport, language: Language) -> str:
    """Keep which parts are the learner's own; a run is worth showing even where that fails."""
    if not practice_folder().exists():  # nothing here is the learner's yet
        return ""
    try:
        practice = open_practice(language)
        practice.capstone[report.track.name] = report.own_parts
        practice.save(create_folder=False)
    except Unsaved as error:
        return language.say("practice.notice.progress", reason=error.reason)
    except GlassformerError as error:
        return str(error)
    return ""
