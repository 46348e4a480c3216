"""`glassformer lens`: what a model would say after every layer."""

from typing import TYPE_CHECKING, Annotated, Any

import typer

from glassformer.cli import model_options
from glassformer.cli.help import Command
from glassformer.cli.json_text import to_json
from glassformer.cli.terminal import terminal
from glassformer.cli.trace_options import ViewRequest, open_trace, options
from glassformer.languages import Language

if TYPE_CHECKING:
    from glassformer.analysis import Lens


def add(app: typer.Typer, language: Language) -> None:
    """Declare the command."""
    say, shared = language.say, options(language)

    @app.command("lens", cls=Command, help=say("lens.help"))
    def lens(
        text: Annotated[str | None, typer.Argument(metavar="[TEXT]", help=say("lens.text"))] = None,
        target: Annotated[str | None, shared["target"]] = None,
        to: Annotated[str | None, shared["to"]] = None,
        model: Annotated[
            str | None, model_options.model_option(language, default=say("lens.usual"))
        ] = None,
        parts: Annotated[bool, typer.Option("--parts", help=say("lens.parts"))] = False,
        top: Annotated[int, typer.Option("--top", metavar="K", help=say("lens.top"))] = 5,
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
        from glassformer.analysis.lens import check_top, logit_lens
        from glassformer.render.terminal.lens import draw_lens

        check_top(top)
        found = logit_lens(open_trace(request, language, residual=True, usual="writer"), top=top)
        if plain:
            typer.echo(to_json(_as_dict(found)))
            return
        console = terminal()
        console.print(draw_lens(found, width=console.width, parts=parts, language=language))


def _as_dict(lens: "Lens") -> dict[str, Any]:
    return {
        "borders": lens.borders,
        "positions": lens.positions,
        "tokens": lens.labels,
        "probabilities": lens.probabilities.tolist(),
        "entropy": lens.entropy.tolist(),
        "divergence": lens.divergence.tolist(),
        "rank": lens.rank.tolist(),
    }
