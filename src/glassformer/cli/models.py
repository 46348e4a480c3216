"""`glassformer models`: those that come with it, and presets: their sizes, what a token costs."""

import json
from typing import Annotated

import typer
from rich import box
from rich.table import Table

from glassformer.cli.help import Command
from glassformer.cli.terminal import terminal
from glassformer.errors import ConfigError
from glassformer.languages import Language
from glassformer.render import Paragraph, draw_legend

COLUMNS = ("name", "family", "layers", "width", "parameters", "flops", "weights", "cache")
FEWER = ("name", "parameters", "flops", "weights")  # what fits a narrow window
FULL_WIDTH = 98


def add(app: typer.Typer, language: Language) -> None:
    """Declare the command."""
    say = language.say

    @app.command("models", cls=Command, help=say("models.help"))
    def models(
        name: Annotated[
            str | None, typer.Argument(metavar="[NAME]", help=say("models.card"))
        ] = None,
        as_json: Annotated[bool, typer.Option("--json", help=say("models.json"))] = False,
    ) -> None:
        # Imported here: other commands need no models.
        from glassformer.models import PRESETS
        from glassformer.models.description import describe
        from glassformer.models.pretrained import card, shipped

        if name is not None:
            if name not in shipped():
                known = language.say("list.comma").join(shipped())
                raise ConfigError(say("models.error.name", known=known, got=repr(name)))
            typer.echo(card(name))
            return
        described = [describe(name) for name in PRESETS]
        if as_json:
            typer.echo(json.dumps([each.as_dict() for each in described], indent=1))
            return
        titles = {
            "name": say("models.name"),
            "family": say("models.family"),
            "layers": say("models.layers"),
            "width": say("models.width"),
            "parameters": say("models.parameters"),
            "flops": say("models.flops"),
            "weights": say("models.weights"),
            "cache": say("models.cache"),
        }
        families = {
            "encoder": say("models.family.encoder"),
            "decoder": say("models.family.decoder"),
            "encoder_decoder": say("models.family.both"),
        }
        console = terminal()
        tasks = {
            "reader": say("models.task.reader"),
            "translator": say("models.task.translator"),
            "writer": say("models.task.writer"),
        }
        console.print(Paragraph(say("models.shipped")))
        console.print(draw_legend([(each, tasks[each]) for each in shipped()], style="cyan"))
        console.print()
        console.print(Paragraph(say("models.presets")))
        columns = COLUMNS if console.width >= FULL_WIDTH else FEWER
        table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
        for column in columns:
            right = "left" if column in ("name", "family") else "right"
            table.add_column(titles[column], justify=right, no_wrap=True)
        for each in described:
            cells = {
                "name": each.name,
                "family": families[each.family],
                "layers": str(each.n_layers),
                "width": str(each.dim),
                "parameters": counted(each.parameters),
                "flops": counted(each.flops_per_token),
                "weights": sized(each.weight_bytes),
                "cache": sized(each.cache_bytes_per_token) if each.cache_bytes_per_token else "·",
            }
            table.add_row(*(cells[column] for column in columns))
        console.print(table)
        console.print(Paragraph(say("models.note"), style="dim"))


def counted(n: int) -> str:
    """A count in thousands, millions, …

    >>> counted(124_439_808)
    '124.4 M'
    """
    for unit, size in (("T", 10**12), ("G", 10**9), ("M", 10**6), ("k", 10**3)):
        if n >= size:
            return f"{n / size:.1f} {unit}"
    return str(n)


def sized(n: int) -> str:
    """Bytes in binary units.

    >>> sized(36_864)
    '36.0 KiB'
    """
    for unit, size in (("TiB", 2**40), ("GiB", 2**30), ("MiB", 2**20), ("KiB", 2**10)):
        if n >= size:
            return f"{n / size:.1f} {unit}"
    return f"{n} B"
