"""`glassformer serve`: the workbench, on this machine and for it alone."""

import webbrowser
from importlib.util import find_spec
from threading import Thread
from typing import Annotated

import typer

from glassformer.cli.help import Command
from glassformer.cli.terminal import terminal
from glassformer.errors import ConfigError
from glassformer.installation import install_command
from glassformer.languages import Language

_PORT = 2017
_WORKERS = 2
_MOST_WORKERS = 64


def add(app: typer.Typer, language: Language) -> None:
    """Declare the command."""
    say = language.say

    @app.command("serve", cls=Command, help=say("serve.help"))
    def serve(
        paths: Annotated[
            list[str] | None,
            typer.Argument(metavar="[PATH]...", help=say("serve.paths")),
        ] = None,
        port: Annotated[
            int, typer.Option("--port", metavar="N", help=say("serve.port", usual=_PORT))
        ] = _PORT,
        no_browser: Annotated[
            bool, typer.Option("--no-browser", help=say("serve.browser"))
        ] = False,
        workers: Annotated[
            int, typer.Option("--workers", metavar="N", help=say("serve.workers", usual=_WORKERS))
        ] = _WORKERS,
    ) -> None:
        _check_numbers(port, workers, language)
        if any(find_spec(name) is None for name in ("fastapi", "uvicorn")):
            command = install_command("workbench")
            raise ConfigError(say("serve.error.extra", command=command))
        # Imported here: help screens and usage errors need no server.
        from glassformer.workbench.library import Library
        from glassformer.workbench.server import listen
        from glassformer.workbench.server import serve as serve_workbench

        library = Library(paths or ())
        try:
            listener = listen(port)
        except OSError as error:
            reason = error.strerror or str(error)
            raise ConfigError(say("serve.error.port", port=port, reason=reason)) from None

        def announce(address: str) -> None:
            typer.echo(say("serve.address", address=address))
            typer.echo(say("serve.stop"))
            if not no_browser:  # a browser in the terminal would hold the server up
                Thread(target=webbrowser.open, args=(address,), daemon=True).start()

        with listener:
            serve_workbench(listener, library, workers=workers, on_open=announce)
        terminal().print(say("serve.stopped"))


def _check_numbers(port: int, workers: int, language: Language) -> None:
    if not 0 <= port <= 65535:
        raise ConfigError(
            language.say("serve.error.number", name="--port", range="0 … 65535", got=port)
        )
    if not 1 <= workers <= _MOST_WORKERS:
        raise ConfigError(
            language.say(
                "serve.error.number", name="--workers", range=f"1 … {_MOST_WORKERS}", got=workers
            )
        )
