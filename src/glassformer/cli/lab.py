"""`glassformer lab`: claims tested on this machine, listed or run one at a time."""

from datetime import date
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.console import Group, RenderableType
from rich.padding import Padding
from rich.text import Text

from glassformer.cli.completion import complete_experiment, complete_model
from glassformer.cli.help import Command
from glassformer.cli.json_text import to_json
from glassformer.cli.learn import open_progress, save_progress
from glassformer.cli.progress import progress_bar
from glassformer.cli.terminal import terminal
from glassformer.errors import ConfigError
from glassformer.languages import Language
from glassformer.render.paragraph import Paragraph
from glassformer.render.terminal.legend import draw_legend

if TYPE_CHECKING:
    from glassformer.school.lab.runner import ExperimentReport

_STYLES = {"holds": "bold green", "partly": "bold yellow", "fails": "bold red"}
_SIGNS = {True: "✓", False: "✗"}


def add(app: typer.Typer, language: Language) -> None:
    """Declare the command."""
    say = language.say

    @app.command("lab", cls=Command, help=say("lab.help"))
    def lab(
        name: Annotated[
            str | None,
            typer.Argument(
                metavar="[NAME]", help=say("lab.name"), autocompletion=complete_experiment
            ),
        ] = None,
        size: Annotated[
            str | None, typer.Option("--size", metavar="quick|full", help=say("lab.size"))
        ] = None,
        seed: Annotated[
            int | None, typer.Option("--seed", metavar="N", help=say("lab.seed"))
        ] = None,
        png: Annotated[
            str | None, typer.Option("--png", metavar="FILE", help=say("lab.png"))
        ] = None,
        svg: Annotated[
            str | None, typer.Option("--svg", metavar="FILE", help=say("lab.svg"))
        ] = None,
        model: Annotated[
            str | None,
            typer.Option(
                "--model",
                "-m",
                metavar="MODEL",
                help=say("lab.model"),
                autocompletion=complete_model,
            ),
        ] = None,
        record: Annotated[
            str | None, typer.Option("--progress", metavar="FILE", help=say("learn.progress"))
        ] = None,
        plain: Annotated[bool, typer.Option("--json", help=say("lab.json"))] = False,
    ) -> None:
        if name is None:
            from glassformer.school.lab import NAMES

            if any(each is not None for each in (size, seed, png, svg, model)) or plain:
                raise ConfigError(say("lab.error.list", names=", ".join(NAMES)))
            terminal().print(_list(language))
            return
        # Imported here: help screens, the list and usage errors must not load torch.
        from glassformer.school.lab.runner import run_experiment
        from glassformer.school.progress import ExperimentRun

        _check_files(png, svg, language)
        kept = open_progress(record, language)
        with progress_bar(say("lab.measuring")) as progress:
            report = run_experiment(
                name, size=size or "full", seed=seed or 0, progress=progress, model=model
            )
        _write_files(report, png, svg, language)
        run = ExperimentRun(date.today().isoformat(), report.size, report.verdict.outcome)
        kept.experiments[report.experiment.name] = run
        save_progress(kept, language)
        if plain:
            typer.echo(to_json(report.as_dict(language)))
        else:
            console = terminal()
            console.print(_draw_report(report, console.width, language))


def _list(language: Language) -> RenderableType:
    from glassformer.school.lab import SECONDS, ExperimentTexts

    say = language.say
    entries = []
    for name, seconds in SECONDS.items():
        claim = ExperimentTexts(name, language).claim
        entries.append((name, say("lab.takes", claim=claim, seconds=seconds["full"])))
    return Group(
        Text(say("lab.title"), style="bold"),
        Paragraph(say("lab.intro")),
        "",
        draw_legend(entries, style="cyan", gap=3),
        "",
        Paragraph(say("lab.try")),
    )


def _check_files(png: str | None, svg: str | None, language: Language) -> None:
    """Before two minutes of measuring, not after."""
    from glassformer.render.figure.chart import check_chart_file

    for path, suffix in ((png, ".png"), (svg, ".svg")):
        if path is None:
            continue
        if Path(path).suffix != suffix:
            raise ConfigError(language.say("lab.error.suffix", suffix=suffix, got=repr(path)))
        check_chart_file(path)


def _write_files(
    report: "ExperimentReport", png: str | None, svg: str | None, language: Language
) -> None:
    from glassformer.render.figure.chart import figure_language, write_chart

    for path in (png, svg):
        if path is None:
            continue
        drawn = figure_language(language)
        texts = report.texts(drawn)
        space = "" if drawn.code == "zh" else " "  # a full stop of Chinese brings its own
        write_chart(
            report.chart(drawn),
            path,
            title=f"{texts.title} · {_outcome_text(report, drawn)}",
            caption=f"{texts.claim}{space}{report.describe_run(drawn)}",
        )


def _draw_report(report: "ExperimentReport", width: int, language: Language) -> RenderableType:
    from glassformer.render.terminal.chart import draw_chart

    say, texts = language.say, report.texts(language)
    verdict: list[RenderableType] = [
        Text(_outcome_text(report, language), style=_STYLES[report.verdict.outcome])
    ]
    verdict += [
        draw_legend([(_SIGNS[holds], sentence)]) for holds, sentence in report.sentences(language)
    ]
    return Group(
        Text(texts.title, style="bold"),
        *_section(say("lab.claim"), Paragraph(texts.claim)),
        *_section(say("lab.prediction"), Paragraph(texts.prediction)),
        *_section(
            say("lab.measured"),
            Group(
                draw_chart(report.chart(language), width=width - 2, language=language),
                "",
                Paragraph(report.describe_run(language), style="dim"),
            ),
        ),
        *_section(say("lab.verdict"), Group(*verdict)),
        *_section(say("lab.why"), Paragraph(texts.explanation)),
        *_section(
            say("lab.look"),
            draw_legend((file, name) for file, name in report.experiment.places),
        ),
    )


def _section(title: str, body: RenderableType) -> list[RenderableType]:
    return ["", Text(title, style="bold"), Padding(body, (0, 0, 0, 2))]


def _outcome_text(report: "ExperimentReport", language: Language) -> str:
    texts = {
        "holds": language.say("lab.holds"),
        "partly": language.say("lab.partly"),
        "fails": language.say("lab.fails"),
    }
    return texts[report.verdict.outcome]
