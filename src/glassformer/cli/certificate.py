"""`glassformer practice certificate`: a page of what the learner's files prove now."""

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from glassformer.cli import capstone, model_options
from glassformer.cli.help import Command
from glassformer.cli.learner_work import open_work
from glassformer.cli.progress import progress_bar
from glassformer.errors import ConfigError
from glassformer.languages import Language
from glassformer.paths import user_path

if TYPE_CHECKING:
    from glassformer.school.practice.capstone.capstone_report import CapstoneReport
    from glassformer.school.practice.grading import Grader
    from glassformer.school.practice.workspace import Workspace


def add(
    practice: typer.Typer,
    language: Language,
    folder_option: Any,
    class_option: Any,
    json_option: Any,
) -> None:
    """Declare the command below `practice`."""
    say = language.say

    @practice.command("certificate", cls=Command, help=say("certificate.help"))
    def certificate(
        file: Annotated[str, typer.Argument(metavar="FILE", help=say("certificate.file"))],
        name: Annotated[str, typer.Option("--name", metavar="NAME", help=say("certificate.name"))],
        folder: Annotated[Path, folder_option] = Path("glassformer-practice"),
        class_folder: Annotated[Path | None, class_option] = None,
        progress: Annotated[
            str | None, typer.Option("--progress", metavar="FILE", help=say("learn.progress"))
        ] = None,
        plain: Annotated[bool, json_option] = False,
    ) -> None:
        _certify(user_path(file), name, folder, class_folder, progress, plain, language)


def _certify(
    path: Path,
    name: str,
    folder: Path,
    class_folder: Path | None,
    progress: str | None,
    plain: bool,
    language: Language,
) -> None:
    from glassformer.cli.learn import open_progress
    from glassformer.school.certificate.page import write_certificate
    from glassformer.school.certificate.proof import collect_proof, describe_certificate
    from glassformer.school.practice.grading import Grader

    say = language.say
    if path.suffix != ".html":
        raise ConfigError(say("certificate.error.suffix", got=repr(str(path))))
    name, exercises, workspace, practice = open_work(name, folder, class_folder, language)
    learning = open_progress(progress, language)
    label, total = say("practice.handin.grading"), len(exercises)
    with Grader() as grader, progress_bar(label, total=total, is_counted=True) as show:
        found = collect_proof(
            name,
            exercises,
            workspace,
            practice=practice,
            learning=learning,
            grader=grader,
            run_capstone=lambda track: _run_capstone(track, workspace, grader, language),
            language=language,
            progress=show,
        )
    write_certificate(path, found, language)
    if plain:
        described = describe_certificate(found, language)
        typer.echo(json.dumps(described, ensure_ascii=False, indent=2))
    else:
        typer.echo(say("certificate.written", path=path, n=len(found.proved)))


def _run_capstone(
    track: str, workspace: "Workspace", grader: "Grader", language: Language
) -> "CapstoneReport":
    from glassformer.school.practice.capstone.assembly import run_capstone
    from glassformer.school.practice.capstone.parts import TRACKS

    about = TRACKS[track]
    model: Any = model_options.load_model(None, "cpu", "float32", language, default=about.model)
    to = capstone.choose_target(track, language)
    return run_capstone(model, track, about.example, workspace, grader, to=to)
