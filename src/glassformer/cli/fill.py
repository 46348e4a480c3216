"""`glassformer fill`: an encoder guesses what is hidden."""

import json
from dataclasses import asdict
from typing import Annotated

import typer
from rich.text import Text

from glassformer.cli import model_options
from glassformer.cli.help import Command
from glassformer.cli.terminal import terminal
from glassformer.languages import Language

BAR = 24


def add(app: typer.Typer, language: Language) -> None:
    """Declare the command."""
    say = language.say

    @app.command("fill", cls=Command, help=say("fill.help"))
    def fill(
        text: Annotated[str | None, typer.Argument(metavar="[TEXT]", help=say("fill.text"))] = None,
        model: Annotated[str | None, model_options.model_option(language, default="reader")] = None,
        top: Annotated[int, typer.Option("--top", metavar="K", help=say("fill.top"))] = 5,
        device: Annotated[str | None, model_options.device_option(language)] = None,
        dtype: Annotated[str | None, model_options.dtype_option(language)] = None,
        as_json: Annotated[bool, model_options.json_option(language)] = False,
    ) -> None:
        # Imported here: help screens and usage errors must not load torch.
        from glassformer.generation import fill
        from glassformer.generation.encoder_tasks import check_guesses

        check_guesses(top)
        sentence = model_options.text_or_input(text, language)
        loaded = model_options.load_model(model, device, dtype, language, default="reader")
        gaps = fill(loaded, sentence, k=top)  # type: ignore[arg-type]  # other models are refused
        if as_json:
            plain = [[asdict(guess) for guess in guesses] for guesses in gaps]
            typer.echo(json.dumps({"text": sentence, "gaps": plain}, ensure_ascii=False))
            return
        console = terminal()
        widest = max(Text(guess.piece).cell_len for guesses in gaps for guess in guesses)
        for number, guesses in enumerate(gaps, start=1):
            if len(gaps) > 1:
                console.print(Text(say("fill.gap", n=number), style="bold"))
            for guess in guesses:
                line = Text(guess.piece, style="cyan")
                line.pad_right(widest - line.cell_len + 2)
                line.append(f"{guess.probability:6.1%}  ")
                line.append("█" * round(BAR * guess.probability), style="dim")
                console.print(line)
