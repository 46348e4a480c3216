"""`glassformer heads`: what the heads of a model do, and which it depends on."""

from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.console import Console

from glassformer.cli import model_options
from glassformer.cli.help import Command
from glassformer.cli.json_text import to_json
from glassformer.cli.progress import progress_bar
from glassformer.cli.terminal import terminal
from glassformer.cli.trace_options import ViewRequest, open_trace, options
from glassformer.languages import Language

if TYPE_CHECKING:
    from glassformer.analysis import HeadEffects, HeadScores


def add(app: typer.Typer, language: Language) -> None:
    """Declare the command."""
    say, shared = language.say, options(language)

    @app.command("heads", cls=Command, help=say("heads.help"))
    def heads(
        text: Annotated[
            str | None, typer.Argument(metavar="[TEXT]", help=say("heads.text"))
        ] = None,
        target: Annotated[str | None, shared["target"]] = None,
        to: Annotated[str | None, shared["to"]] = None,
        model: Annotated[str | None, model_options.model_option(language, default="writer")] = None,
        top: Annotated[
            int | None, typer.Option("--top", metavar="K", help=say("heads.top"))
        ] = None,
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
        from glassformer.analysis import head_effects, head_scores
        from glassformer.analysis.lens import check_top
        from glassformer.render.terminal.head_effects import draw_head_effects
        from glassformer.render.terminal.head_scores import draw_head_scores

        top = (3 if text is None else 10) if top is None else top
        check_top(top)
        if text is not None:
            request = ViewRequest(
                text=text,
                target=target,
                to=to,
                model=model,
                device=device,
                dtype=dtype,
            )
            trace = open_trace(request, language, residual=True, usual="writer")
            with progress_bar(say("heads.removing")) as progress:
                effects = head_effects(trace, report=lambda n, total: progress(n / total))
            if plain:
                typer.echo(to_json(_as_plain_effects(effects)))
            else:
                view = draw_head_effects(effects, trace, top=top, language=language)
                terminal().print(view)
            return
        loaded = model_options.load_model(model, device, dtype, language, default="writer")
        with Console(stderr=True).status(say("heads.running")):
            found = head_scores(loaded, sequences=sequences, length=length, seed=seed)
        if plain:
            typer.echo(to_json(_as_dict(found)))
            return
        terminal().print(draw_head_scores(found, top=top, language=language))


def _as_plain_effects(found: "HeadEffects") -> dict[str, Any]:
    heads = []
    for i, (site, head) in enumerate(found.heads):
        heads.append({"site": site, "head": head, "effect": float(found.divergence[i])})
        if found.loss is not None:
            heads[-1]["loss"] = float(found.loss[i])
    return {"how": found.how, "heads": heads}


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
