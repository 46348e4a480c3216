"""`glassformer embed`: texts as vectors, and how alike they are."""

import json
from typing import Annotated

import typer
from rich import box
from rich.table import Table
from rich.text import Text

from glassformer.cli import model_options
from glassformer.cli.help import Command
from glassformer.cli.terminal import terminal
from glassformer.languages import Language
from glassformer.render.paragraph import Paragraph

MOST = 12  # texts whose likeness still fits a window
SHOWN = 8  # numbers of a vector


def add(app: typer.Typer, language: Language) -> None:
    """Declare the command."""
    say = language.say

    @app.command("embed", cls=Command, help=say("embed.help"))
    def embed(
        texts: Annotated[
            list[str] | None, typer.Argument(metavar="[TEXT]…", help=say("embed.text"))
        ] = None,
        model: Annotated[str | None, model_options.model_option(language, default="reader")] = None,
        device: Annotated[str | None, model_options.device_option(language)] = None,
        dtype: Annotated[str | None, model_options.dtype_option(language)] = None,
        as_json: Annotated[bool, model_options.json_option(language)] = False,
    ) -> None:
        # Imported here: help screens and usage errors must not load torch.
        from glassformer.generation import embed

        given = model_options.texts_or_lines(texts, language)
        loaded = model_options.load_model(model, device, dtype, language, default="reader")
        vectors = embed(loaded, given).cpu()  # type: ignore[arg-type]  # other models are refused
        if as_json:
            for text, vector in zip(given, vectors.tolist(), strict=True):
                typer.echo(json.dumps({"text": text, "vector": vector}, ensure_ascii=False))
            return
        console = terminal()
        alike = len(given) > 1 and len(given) <= MOST
        table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
        table.add_column("", justify="right", style="dim")
        table.add_column(say("embed.column.text"), ratio=1)
        if alike:
            for number in range(1, len(given) + 1):
                table.add_column(str(number), justify="right", no_wrap=True)
        else:
            table.add_column(say("embed.column.vector"), no_wrap=True)
        closeness = (vectors @ vectors.T).tolist()
        for i, (text, vector) in enumerate(zip(given, vectors.tolist(), strict=True)):
            shown = " ".join(f"{x: .2f}" for x in vector[: SHOWN // 2]) + " …"
            cells = [f"{x:.2f}" for x in closeness[i]] if alike else [shown]
            table.add_row(str(i + 1), Text(text, overflow="ellipsis", no_wrap=True), *cells)
        console.print(table)
        n = vectors.shape[1]
        note = say("embed.note.alike", n=n) if alike else say("embed.note.vectors", n=n)
        console.print(Paragraph(note, style="dim"))
