"""`glassformer practice capstone`: the exercises, joined into one model that runs."""

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from glassformer.cli import model_options
from glassformer.cli.completion import complete_choice
from glassformer.cli.help import Command
from glassformer.cli.progress import progress_bar
from glassformer.cli.terminal import terminal
from glassformer.errors import ConfigError
from glassformer.languages import Language

if TYPE_CHECKING:
    from glassformer.school.practice.capstone.capstone_report import CapstoneReport
    from glassformer.school.progress import ProgressStore

_PATHS = ("translator", "decoder")
_FAILED = 1


def add(practice: typer.Typer, language: Language, folder_option: Any, json_option: Any) -> None:
    """Declare the command below `practice`."""
    say = language.say

    @practice.command("capstone", cls=Command, help=say("practice.capstone.help"))
    def capstone(
        text: Annotated[
            str | None, typer.Argument(metavar="[TEXT]", help=say("practice.capstone.text"))
        ] = None,
        path: Annotated[
            str,
            typer.Option(
                "--path",
                metavar="|".join(_PATHS),
                help=say("practice.capstone.path"),
                autocompletion=complete_choice(*_PATHS),
            ),
        ] = _PATHS[0],
        to: Annotated[
            str | None, typer.Option("--to", metavar="zh|fr", help=say("practice.capstone.to"))
        ] = None,
        checkpoint: Annotated[
            Path | None,
            typer.Option("--checkpoint", metavar="DIR", help=say("practice.capstone.checkpoint")),
        ] = None,
        folder: Annotated[Path, folder_option] = Path("glassformer-practice"),
        plain: Annotated[bool, json_option] = False,
    ) -> None:
        if path not in _PATHS:
            raise ConfigError(say("practice.capstone.error.path", path=path))
        if checkpoint is not None and path != "decoder":
            raise ConfigError(say("practice.capstone.error.checkpoint"))
        if to is not None and path != "translator":
            raise ConfigError(say("practice.capstone.error.to"))
        _run(path, text, to, checkpoint, folder, plain, language)


def _run(
    path: str,
    text: str | None,
    to: str | None,
    checkpoint: Path | None,
    folder: Path,
    plain: bool,
    language: Language,
) -> None:
    from glassformer.cli.practice import load_practice_progress
    from glassformer.school.practice.capstone.assembly import run_capstone
    from glassformer.school.practice.capstone.capstone_texts import as_json
    from glassformer.school.practice.capstone.parts import TRACKS
    from glassformer.school.practice.capstone.screen import draw_capstone
    from glassformer.school.practice.grading import Grader
    from glassformer.school.practice.workspace import Workspace

    progress, notice = load_practice_progress(folder, language)
    if notice:
        typer.echo(notice, err=True)
    workspace = Workspace(folder, language)
    track = TRACKS[path]
    with Grader() as grader:  # begins to load while the model is loaded here
        source = None if checkpoint is None else str(checkpoint)
        model: Any = model_options.load_model(
            source, "cpu", "float32", language, default=track.model
        )
        to = to or choose_target(path, language)
        label = language.say("practice.capstone.running")
        with progress_bar(label, total=len(track.parts), is_counted=True) as show:
            report = run_capstone(
                model, path, text or track.example, workspace, grader, to=to, progress=show
            )
    _remember(report, progress, folder, language)
    if plain:
        result = as_json(report, workspace, language)
        typer.echo(json.dumps(result, ensure_ascii=False, indent=2))
    else:
        terminal().print(draw_capstone(report, workspace, language))
    if not report.is_equal or report.select("wrong"):
        raise typer.Exit(_FAILED)


def choose_target(path: str, language: Language) -> str | None:
    """The language to translate into where none is given."""
    if path != "translator":
        return None
    return "zh" if language.code == "zh" else "fr"


def _remember(
    report: "CapstoneReport", progress: "ProgressStore", folder: Path, language: Language
) -> None:
    """Store which parts of a model that runs are the learner's own."""
    from glassformer.school.progress import Unsaved

    if not folder.exists():  # nothing here is the learner's yet
        return
    progress.capstone[report.track.name] = report.own_parts
    try:
        progress.save(create_folder=False)
    except Unsaved as error:
        typer.echo(language.say("practice.notice.progress", reason=error.reason), err=True)
