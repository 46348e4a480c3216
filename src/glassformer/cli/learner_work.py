"""What a learner has done, opened for the commands that grade all of it."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import typer

from glassformer.cli.class_exercises import list_exercises
from glassformer.errors import ConfigError
from glassformer.languages import Language

if TYPE_CHECKING:
    from glassformer.school.practice import Exercise
    from glassformer.school.practice.workspace import Workspace
    from glassformer.school.progress import ProgressStore


class LearnerWork(NamedTuple):
    """A learner's name, exercises, files and progress."""

    name: str
    exercises: "Sequence[Exercise]"
    workspace: "Workspace"
    progress: "ProgressStore"


def open_work(
    name: str, folder: Path, class_folder: Path | None, language: Language
) -> LearnerWork:
    """The work in a practice folder; a folder that does not exist is refused."""
    from glassformer.cli.practice import load_practice_progress
    from glassformer.school.classroom.hand_in import check_name
    from glassformer.school.practice.workspace import Workspace

    if not folder.exists():
        raise ConfigError(language.say("practice.error.none", folder=folder))
    name = check_name(name)
    exercises = list_exercises(class_folder, language)
    progress, notice = load_practice_progress(folder, language)
    if notice:
        typer.echo(notice, err=True)
    return LearnerWork(name, exercises, Workspace(folder, language, class_folder), progress)
