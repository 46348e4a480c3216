"""`glassformer why`: what made a model prefer one token to another, tested by ablation."""

from typing import TYPE_CHECKING, Annotated, Any

import typer

from glassformer.cli import model_options
from glassformer.cli.help import Command
from glassformer.cli.json_text import to_json
from glassformer.cli.terminal import terminal
from glassformer.cli.trace_options import ViewRequest, open_trace, options
from glassformer.languages import Language

if TYPE_CHECKING:
    from glassformer.analysis import Why


def add(app: typer.Typer, language: Language) -> None:
    """Declare the command."""
    say, shared = language.say, options(language)

    @app.command("why", cls=Command, help=say("why.help"))
    def why(
        text: Annotated[str | None, typer.Argument(metavar="[TEXT]", help=say("lens.text"))] = None,
        target: Annotated[str | None, shared["target"]] = None,
        to: Annotated[str | None, shared["to"]] = None,
        model: Annotated[
            str | None, model_options.model_option(language, default=say("lens.usual"))
        ] = None,
        token: Annotated[
            str | None, typer.Option("--token", metavar="TOKEN", help=say("why.token"))
        ] = None,
        against: Annotated[
            str | None, typer.Option("--against", metavar="TOKEN", help=say("why.against"))
        ] = None,
        position: Annotated[
            int, typer.Option("--position", metavar="N", help=say("why.position"))
        ] = -1,
        top: Annotated[int, typer.Option("--top", metavar="K", help=say("why.top"))] = 8,
        device: Annotated[str | None, model_options.device_option(language)] = None,
        dtype: Annotated[str | None, model_options.dtype_option(language)] = None,
        plain: Annotated[bool, model_options.json_option(language)] = False,
    ) -> None:
        request = ViewRequest(
            text=text,
            target=target,
            to=to,
            model=model,
            trace=None,
            run=None,
            device=device,
            dtype=dtype,
        )
        # Imported here: help screens and usage errors must not load torch.
        from glassformer.analysis import why as explain
        from glassformer.render.terminal.why import draw_why

        trace = open_trace(request, language, residual=True, usual="writer")
        found = explain(trace, token, against=against, position=position, top=top)
        if plain:
            typer.echo(to_json(_as_dict(found)))
        else:
            terminal().print(draw_why(found, language=language))


def _as_dict(found: "Why") -> dict[str, Any]:
    verdict = found.verdict
    return {
        "token": found.token,
        "against": found.against,
        "position": found.position,
        "logit": found.logit,
        "reasons": [
            {
                "name": reason.name,
                "value": reason.value,
                "sources": [source._asdict() for source in reason.sources],
                "rest": reason.rest,
            }
            for reason in found.reasons
        ],
        "rest": found.rest,
        "remainder": found.remainder,
        "frozen": found.frozen,
        "verdict": None
        if verdict is None
        else {
            "whole": verdict.whole,
            "kept": verdict.kept,
            "removed": verdict.removed,
            "none": verdict.none,
            "carried": verdict.carried,
            "needed": verdict.needed,
            "faithful": verdict.is_faithful,
        },
    }
