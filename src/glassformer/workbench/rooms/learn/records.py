"""Where a learner's progress is: the user's data folder, and the folder of the exercises."""

from contextlib import suppress
from datetime import date
from pathlib import Path

from glassformer.errors import ConfigError, GlassformerError
from glassformer.languages import Language
from glassformer.school.lab.runner import ExperimentReport
from glassformer.school.practice.workspace import DEFAULT, Workspace
from glassformer.school.progress import (
    FILE,
    ExperimentRun,
    NotProgress,
    ProgressStore,
    Unsaved,
    load_progress,
)


def open_learning(language: Language) -> ProgressStore:
    """Chapters read and questions answered."""
    try:
        return load_progress()
    except NotProgress as error:
        key = "learn.error.special" if error.is_special else "learn.error.foreign"
        raise ConfigError(language.say(key, path=error.path)) from None


def open_practice(language: Language) -> ProgressStore:
    """Exercises passed and hints read."""
    path = practice_folder() / FILE
    try:
        return load_progress(path)
    except NotProgress as error:
        raise ConfigError(language.say("practice.error.progress", path=error.path)) from None


def open_workspace(language: Language) -> Workspace:
    return Workspace(practice_folder(), language)


def practice_folder() -> Path:
    """The folder that `glassformer practice` uses where the server was started."""
    return Path.cwd() / DEFAULT


def save_progress(progress: ProgressStore, language: Language) -> None:
    """Write progress, or say why that cannot be."""
    try:
        progress.save()
    except Unsaved as error:
        values = {"file": error.path, "reason": error.reason}
        raise ConfigError(language.say("practice.notice.readonly", **values)) from None


def record_experiment(report: ExperimentReport) -> None:
    """Remember that an experiment was run; its result is worth showing even where that fails."""
    with suppress(GlassformerError):
        learning = load_progress()
        run = ExperimentRun(date.today().isoformat(), report.size, report.verdict.outcome)
        learning.experiments[report.experiment.name] = run
        learning.save()


def list_notices(learning: ProgressStore, practice: ProgressStore, language: Language) -> list[str]:
    """What happened to files that could not be used."""
    found = []
    if learning.kept_aside is not None:
        found.append(language.say("learn.aside", path=learning.kept_aside))
    if practice.kept_aside is not None:
        found.append(language.say("practice.notice.aside", file=practice.kept_aside.name))
    return found
