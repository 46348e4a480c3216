"""`glassformer heads`: which heads look back, find copies, continue them, or copy."""

from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.console import Console

from glassformer.cli import model_options
from glassformer.cli.help import Command
from glassformer.cli.json_text import to_json
from glassformer.cli.terminal import terminal
from glassformer.languages import Language

if TYPE_CHECKING:
    from glassformer.analysis import HeadScores


def add(app: typer.Typer, language: Language) -> None:
    """Declare the command."""
    say = language.say

    @app.command("heads", cls=Command, help=say("heads.help"))
    def heads(
        model: Annotated[str | None, model_options.model_option(language, default="writer")] = None,
        top: Annotated[int, typer.Option("--top", metavar="K", help=say("heads.top"))] = 3,
        sequences: Annotated[
            int, typer.Option("--sequences", metavar="N", help=say("heads.sequences"))
        ] = 4,
        length: Annotated[
            int | None, typer.Option("--length", metavar="L", help=say("heads.length"))
        ] = None,
        seed: Annotated[int, typer.Option("--seed", metavar="N", help=say("heads.seed"))] = 0,
        device: Annotated[str | None, model_options.device_option(language)] = None,
        dtype: Annotated[str | None, model_options.dtype_option(language)] = None,
        plain: Annotated[bool, model_options.json_option(language)] = False,
    ) -> None:
        # Imported here: help screens and usage errors must not load torch.
        from glassformer.analysis import head_scores
        from glassformer.analysis.lens import check_top
        from glassformer.render.terminal.head_scores import draw_head_scores

        check_top(top)
        loaded = model_options.load_model(model, device, dtype, language, default="writer")
        with Console(stderr=True).status(say("heads.running")):
            found = head_scores(loaded, sequences=sequences, length=length, seed=seed)
        if plain:
            typer.echo(to_json(_as_dict(found)))
            return
        terminal().print(draw_head_scores(found, top=top, language=language))


def _as_dict(found: "HeadScores") -> dict[str, Any]:
    scores = {name: values.tolist() for name, values in found.scores.items()}
    return {
        "sequences": found.sequences,
        "length": found.length,
        "seed": found.seed,
        "chance": found.chance,
        "heads": [
            {"site": site, "head": head, **{name: scores[name][i] for name in scores}}
            for i, (site, head) in enumerate(found.heads)
        ],
        "refusals": found.refusals,
    }
