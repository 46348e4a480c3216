"""`glassformer lab`: claims tested on this machine, listed or run one at a time."""

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.console import Console, Group, RenderableType
from rich.padding import Padding
from rich.text import Text

from glassformer.cli.help import Command
from glassformer.cli.json_text import to_json
from glassformer.cli.terminal import terminal
from glassformer.errors import ConfigError
from glassformer.languages import Language
from glassformer.render.paragraph import Paragraph
from glassformer.render.terminal.legend import draw_legend

if TYPE_CHECKING:
    from glassformer.school.lab import Report
    from glassformer.school.lab.progress import Progress

_STYLES = {"holds": "bold green", "partly": "bold yellow", "fails": "bold red"}
_SIGNS = {True: "✓", False: "✗"}


def add(app: typer.Typer, language: Language) -> None:
    """Declare the command."""
    say = language.say

    @app.command("lab", cls=Command, help=say("lab.help"))
    def lab(
        name: Annotated[str | None, typer.Argument(metavar="[NAME]", help=say("lab.name"))] = None,
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
            str | None, typer.Option("--model", "-m", metavar="MODEL", help=say("lab.model"))
        ] = None,
        plain: Annotated[bool, typer.Option("--json", help=say("lab.json"))] = False,
    ) -> None:
        # Imported here: other commands need no experiments.
        from glassformer.school.lab import NAMES, run

        if name is None:
            if any(each is not None for each in (size, seed, png, svg, model)) or plain:
                raise ConfigError(say("lab.error.list", names=", ".join(NAMES)))
            terminal().print(_list(language))
            return
        _check_files(png, svg, language)
        with _bar(language) as progress:
            report = run(name, size=size or "full", seed=seed or 0, progress=progress, model=model)
        _write_files(report, png, svg, language)
        if plain:
            typer.echo(to_json(report.as_dict(language)))
        else:
            console = terminal()
            console.print(_shown(report, console.width, language))


def _list(language: Language) -> RenderableType:
    from glassformer.school.lab import NAMES, Words, find

    say = language.say
    entries = []
    for name in NAMES:
        claim, seconds = Words(name, language).claim, find(name).seconds["full"]
        entries.append((name, say("lab.takes", claim=claim, seconds=seconds)))
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


def _write_files(report: "Report", png: str | None, svg: str | None, language: Language) -> None:
    from glassformer.render.figure.chart import spoken, write_chart

    for path in (png, svg):
        if path is None:
            continue
        drawn = spoken(language)
        words = report.words(drawn)
        space = "" if drawn.code == "zh" else " "  # a full stop of Chinese brings its own
        write_chart(
            report.chart(drawn),
            path,
            title=f"{words.title} · {_outcome(report, drawn)}",
            caption=f"{words.claim}{space}{_took(report, drawn)}",
        )


@contextmanager
def _bar(language: Language) -> Iterator["Progress"]:
    """A bar on standard error where that is a terminal; it is gone when all is measured."""
    if not sys.stderr.isatty():
        yield lambda _: None
        return
    from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn

    with Progress(
        TextColumn(language.say("lab.measuring")),
        BarColumn(bar_width=40),
        TextColumn("{task.percentage:.0f} %"),
        TimeRemainingColumn(),
        console=Console(stderr=True, highlight=False, markup=False),
        transient=True,
    ) as shown:
        task = shown.add_task("", total=1.0)
        yield lambda share: shown.update(task, completed=share)


def _shown(report: "Report", width: int, language: Language) -> RenderableType:
    from glassformer.render.terminal.chart import draw_chart

    say, words = language.say, report.words(language)
    verdict: list[RenderableType] = [
        Text(_outcome(report, language), style=_STYLES[report.verdict.outcome])
    ]
    verdict += [
        draw_legend([(_SIGNS[holds], sentence)]) for holds, sentence in report.sentences(language)
    ]
    return Group(
        Text(words.title, style="bold"),
        *_section(say("lab.claim"), Paragraph(words.claim)),
        *_section(say("lab.prediction"), Paragraph(words.prediction)),
        *_section(
            say("lab.measured"),
            Group(
                draw_chart(report.chart(language), width=width - 2, language=language),
                "",
                Paragraph(_took(report, language), style="dim"),
            ),
        ),
        *_section(say("lab.verdict"), Group(*verdict)),
        *_section(say("lab.why"), Paragraph(words.explanation)),
        *_section(
            say("lab.look"),
            draw_legend((file, name) for file, name in report.experiment.places),
        ),
    )


def _section(title: str, body: RenderableType) -> list[RenderableType]:
    return ["", Text(title, style="bold"), Padding(body, (0, 0, 0, 2))]


def _outcome(report: "Report", language: Language) -> str:
    told = {
        "holds": language.say("lab.holds"),
        "partly": language.say("lab.partly"),
        "fails": language.say("lab.fails"),
    }
    return told[report.verdict.outcome]


def _took(report: "Report", language: Language) -> str:
    import torch

    return language.say(
        "lab.took",
        size=report.size,
        seed=report.seed,
        seconds=f"{report.seconds:.1f}",
        torch=torch.__version__,
    )
