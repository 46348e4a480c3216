"""`glassformer mask`: draw a mask that is written as an expression."""

import json
from typing import TYPE_CHECKING, Annotated

import typer
from rich.console import Console
from rich.padding import Padding
from rich.text import Text

from glassformer.cli.help import Command
from glassformer.cli.terminal import terminal
from glassformer.errors import ConfigError
from glassformer.languages import Language
from glassformer.render.paragraph import Paragraph

if TYPE_CHECKING:
    from glassformer.functional import Mask

_MOST_CELLS = 1 << 24
_MOST_MARKS = 48


def add(app: typer.Typer, language: Language) -> None:
    """Declare the command."""
    say = language.say

    @app.command("mask", cls=Command, help=say("mask.help"))
    def mask(
        expression: Annotated[
            str, typer.Argument(metavar="EXPRESSION", help=say("mask.expression"))
        ],
        queries: Annotated[
            int | None, typer.Option("--queries", metavar="N", min=1, help=say("mask.queries"))
        ] = None,
        keys: Annotated[
            int | None, typer.Option("--keys", metavar="N", min=1, help=say("mask.keys"))
        ] = None,
        as_json: Annotated[bool, typer.Option("--json", help=say("mask.json"))] = False,
    ) -> None:
        # Imported here: help screens and usage errors must not load torch.
        from glassformer.functional.masks.expression import read_mask

        drawn = read_mask(expression, language)
        B, _, L, S = drawn.drawing_extent(queries, keys)
        if B * L * S > _MOST_CELLS:
            raise ConfigError(
                say("mask.error.cells", most=f"{_MOST_CELLS:,}", got=f"{B} × {L} × {S}")
            )
        if as_json:
            allowed = drawn.dense(L, S, batch=B).expand(B, 1, L, S)[:, 0].int().tolist()
            typer.echo(json.dumps(allowed if B > 1 else allowed[0]))
        else:
            _show(drawn, B, L, S, terminal(), language)


def _show(mask: "Mask", B: int, L: int, S: int, console: Console, language: Language) -> None:
    from glassformer.render.terminal.mask import draw_mask

    most = min(_MOST_MARKS, console.width // 2 - 1)
    marks = [draw_mask(mask, L, S, sequence=sequence, most=most) for sequence in range(B)]
    console.print(Text(repr(mask), style="bold"))
    console.print(Paragraph(language.say("mask.legend", queries=L, keys=S), style="dim"))
    if max(L, S) > most:
        rows, cols = -(-L // most), -(-S // most)
        console.print(Paragraph(language.say("mask.pooled", rows=rows, cols=cols), style="dim"))
    for number, drawing in enumerate(marks, start=1):
        console.print()
        if B > 1:
            console.print(Text(language.say("mask.sequence", n=number, total=B)))
        console.print(Padding(drawing, (0, 0, 0, 2)))
