"""`glassformer shapes`: every shape in a model, step by step."""

import json
from typing import TYPE_CHECKING, Annotated

import typer

from glassformer.cli.help import Command
from glassformer.cli.terminal import terminal
from glassformer.errors import ConfigError
from glassformer.languages import Language
from glassformer.paths import user_path

if TYPE_CHECKING:
    from glassformer.models import Config


def add(app: typer.Typer, language: Language) -> None:
    """Declare the command."""
    say = language.say

    @app.command("shapes", cls=Command, help=say("shapes.help"))
    def shapes(
        name: Annotated[str, typer.Argument(metavar="MODEL", help=say("shapes.model"))],
        batch: Annotated[
            int | None, typer.Option("--batch", metavar="B", help=say("shapes.batch"))
        ] = None,
        length: Annotated[
            int | None, typer.Option("--length", metavar="L", help=say("shapes.length"))
        ] = None,
        context: Annotated[
            int | None, typer.Option("--context", metavar="S", help=say("shapes.context"))
        ] = None,
        as_json: Annotated[bool, typer.Option("--json", help=say("shapes.json"))] = False,
    ) -> None:
        # Imported here: other commands need no models.
        from glassformer.models.shapes import shapes
        from glassformer.render.terminal.shapes import draw_shapes

        config = config_of(name, language)
        trace = shapes(config, name=name, batch=batch, length=length, context=context)
        if as_json:
            typer.echo(json.dumps(trace.as_dict()))
        else:
            terminal().print(draw_shapes(trace, language=language))


def config_of(name: str, language: Language) -> "Config":
    """The config that a name on the command line stands for: a preset's, or a saved model's."""
    from glassformer.models import PRESETS
    from glassformer.models.checkpoints import load_config

    if name in PRESETS:
        return PRESETS[name]
    if name.startswith("hf://") or user_path(name).exists():
        return load_config(name)
    presets = ", ".join(PRESETS)
    raise ConfigError(language.say("shapes.error.name", presets=presets, got=repr(name)))
