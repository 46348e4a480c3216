"""`glassformer demo`: a translation, what the model attended to, and attention in small numbers."""

import json
from typing import Annotated

import typer

from glassformer.cli.help import Command
from glassformer.cli.model_options import compile_ahead
from glassformer.cli.terminal import terminal
from glassformer.languages import Language


def add(app: typer.Typer, language: Language) -> None:
    """Declare the command."""

    @app.command("demo", cls=Command, help=language.say("demo.help"))
    def demo(
        as_json: Annotated[bool, typer.Option("--json", help=language.say("demo.json"))] = False,
    ) -> None:
        compile_ahead("cpu")
        # Imported here, as in every command: help screens and usage errors must not load torch.
        if as_json:
            from glassformer.cli.worked_examples import as_dict

            typer.echo(json.dumps(as_dict(), indent=2, allow_nan=False))
        else:
            from glassformer.cli.demo_screens import show

            show(terminal(), language)
