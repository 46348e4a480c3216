"""`glassformer practice hand-in`: a learner's work as one file for the instructor."""

from pathlib import Path
from typing import Annotated, Any

import typer

from glassformer.cli.help import Command
from glassformer.cli.learner_work import open_work
from glassformer.cli.progress import progress_bar
from glassformer.errors import ConfigError
from glassformer.languages import Language
from glassformer.paths import user_path


def add(practice: typer.Typer, language: Language, folder_option: Any, class_option: Any) -> None:
    """Declare the command below `practice`."""
    say = language.say

    @practice.command("hand-in", cls=Command, help=say("practice.handin.help"))
    def hand_in(
        file: Annotated[str, typer.Argument(metavar="FILE", help=say("practice.handin.file"))],
        name: Annotated[
            str, typer.Option("--name", metavar="NAME", help=say("practice.handin.name"))
        ],
        folder: Annotated[Path, folder_option] = Path("glassformer-practice"),
        class_folder: Annotated[Path | None, class_option] = None,
    ) -> None:
        _hand_in(user_path(file), name, folder, class_folder, language)


def _hand_in(
    path: Path, name: str, folder: Path, class_folder: Path | None, language: Language
) -> None:
    from glassformer.school.classroom.hand_in import build_hand_in, write_hand_in
    from glassformer.school.practice.grading import Grader
    from glassformer.school.progress import Unsaved

    say = language.say
    if path.suffix != ".json":
        raise ConfigError(say("practice.handin.suffix", got=repr(str(path))))
    name, exercises, workspace, progress = open_work(name, folder, class_folder, language)
    label, total = say("practice.handin.grading"), len(exercises)
    with Grader() as grader, progress_bar(label, total=total, is_counted=True) as show:
        made = build_hand_in(name, exercises, workspace, progress, grader, progress=show)
    if not made.exercises:
        raise ConfigError(say("practice.handin.nothing", folder=folder))
    write_hand_in(path, made)
    try:
        progress.save(create_folder=False)
    except Unsaved as error:
        typer.echo(say("practice.notice.progress", reason=error.reason), err=True)
    n_passed = sum(each.passed for each in made.exercises)
    values = {"path": path, "n": n_passed, "total": len(made.exercises)}
    typer.echo(say("practice.handin.written", **values))
