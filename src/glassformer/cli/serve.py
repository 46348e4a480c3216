"""`glassformer serve`: the workbench, once there is one."""

import typer

from glassformer.cli.help import Command
from glassformer.errors import GlassformerError
from glassformer.languages import Language


def add(app: typer.Typer, language: Language) -> None:
    """Declare the command."""

    @app.command("serve", cls=Command, help=language.say("serve.help"))
    def serve() -> None:
        raise GlassformerError(language.say("serve.absent"))
