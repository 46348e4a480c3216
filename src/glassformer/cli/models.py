"""`glassformer models`: the included models and the presets, with their sizes and costs."""

import json
from typing import Annotated

import typer
from rich import box
from rich.table import Table

from glassformer.cli.completion import complete_model
from glassformer.cli.help import Command
from glassformer.cli.known_names import model_names, read_card
from glassformer.cli.terminal import terminal
from glassformer.errors import ConfigError
from glassformer.languages import Language
from glassformer.render.paragraph import Paragraph
from glassformer.render.terminal.legend import draw_legend

COLUMNS = ("name", "family", "layers", "width", "parameters", "flops", "weights", "cache")
FEWER = ("name", "parameters", "flops", "weights")  # what fits a narrow window
FULL_WIDTH = 100


def add(app: typer.Typer, language: Language) -> None:
    """Declare the command."""
    say = language.say

    @app.command("models", cls=Command, help=say("models.help"))
    def models(
        name: Annotated[
            str | None,
            typer.Argument(
                metavar="[NAME]", help=say("models.card"), autocompletion=complete_model
            ),
        ] = None,
        as_json: Annotated[bool, typer.Option("--json", help=say("models.json"))] = False,
    ) -> None:
        if name is not None:
            if name not in model_names():
                known = language.say("list.comma").join(model_names())
                raise ConfigError(say("models.error.name", known=known, got=repr(name)))
            typer.echo(read_card(name))
            return
        # Imported here: help screens, cards and usage errors must not load torch.
        from glassformer.models import PRESETS
        from glassformer.models.description import describe

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
            "storyteller": say("models.task.storyteller"),
            "translator": say("models.task.translator"),
            "writer": say("models.task.writer"),
        }
        console.print(Paragraph(say("models.shipped")))
        console.print(draw_legend([(each, tasks[each]) for each in model_names()], style="cyan"))
        console.print()
        console.print(Paragraph(say("models.presets")))
        columns = COLUMNS if console.width >= FULL_WIDTH else FEWER
        table = Table(box=box.SIMPLE_HEAD, pad_edge=False, collapse_padding=True)
        for column in columns:
            right = "left" if column in ("name", "family") else "right"
            table.add_column(titles[column], justify=right, no_wrap=True)
        for each in described:
            cells = {
                "name": each.name,
                "family": families[each.family],
                "layers": str(each.n_layers),
                "width": str(each.dim),
                "parameters": format_parameters(each.parameters, each.active_parameters),
                "flops": format_count(each.flops_per_token),
                "weights": format_bytes(each.weight_bytes),
                "cache": format_bytes(each.cache_bytes_per_token)
                if each.cache_bytes_per_token
                else "·",
            }
            table.add_row(*(cells[column] for column in columns))
        console.print(table)
        console.print(Paragraph(say("models.note"), style="dim"))


def format_parameters(n: int, n_active: int) -> str:
    """All parameters, and in the same unit those that one token uses.

    >>> format_parameters(46_702_792_704, 12_879_925_248)
    '46.7/12.9G'
    """
    if n_active == n:
        return format_count(n)
    number, _, unit = format_count(n).partition(" ")
    return f"{number}/{n_active / 1000 ** (' kMGT'.index(unit or ' ')):.1f}{unit}".rstrip()


def format_count(n: int) -> str:
    """A count in thousands, millions, …

    >>> format_count(124_439_808)
    '124.4 M'
    """
    for unit, size in (("T", 10**12), ("G", 10**9), ("M", 10**6), ("k", 10**3)):
        if n >= size:
            return f"{n / size:.1f} {unit}"
    return str(n)


def format_bytes(n: int) -> str:
    """Bytes in binary units.

    >>> format_bytes(36_864)
    '36.0 KiB'
    """
    for unit, size in (("TiB", 2**40), ("GiB", 2**30), ("MiB", 2**20), ("KiB", 2**10)):
        if n >= size:
            return f"{n / size:.1f} {unit}"
    return f"{n} B"
