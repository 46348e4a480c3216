"""`glassformer translate`: an encoder reads a text, a decoder writes another."""

import json
from dataclasses import asdict
from typing import Annotated

import typer
from rich.text import Text

from glassformer.cli import model_options
from glassformer.cli.help import Command
from glassformer.cli.terminal import terminal
from glassformer.languages import Language

TOGETHER = 256  # texts that are read before the first is written


def add(app: typer.Typer, language: Language) -> None:
    """Declare the command."""
    say = language.say

    @app.command("translate", cls=Command, help=say("translate.help"))
    def translate(
        texts: Annotated[
            list[str] | None, typer.Argument(metavar="[TEXT]…", help=say("translate.text"))
        ] = None,
        model: Annotated[
            str | None, model_options.model_option(language, default="translator")
        ] = None,
        to: Annotated[
            str | None, typer.Option("--to", metavar="zh|fr", help=say("translate.to"))
        ] = None,
        beams: Annotated[
            int, typer.Option("--beams", metavar="N", help=say("translate.beams"))
        ] = 4,
        n_best: Annotated[
            int, typer.Option("--n-best", metavar="N", help=say("translate.nbest"))
        ] = 1,
        length_penalty: Annotated[
            float, typer.Option("--length-penalty", metavar="A", help=say("translate.penalty"))
        ] = 1.0,
        max_new: Annotated[
            int | None, typer.Option("--max-new", metavar="N", help=say("generate.maxnew"))
        ] = None,
        device: Annotated[str | None, model_options.device_option(language)] = None,
        dtype: Annotated[str | None, model_options.dtype_option(language)] = None,
        as_json: Annotated[bool, model_options.json_option(language)] = False,
    ) -> None:
        # Imported here: other commands need no models.
        from glassformer.generation import rank_translations

        sources = model_options.texts_or_lines(texts, language)
        loaded = model_options.load_model(model, device, dtype, language, default="translator")
        console = terminal()
        for start in range(0, len(sources), TOGETHER):
            batch = sources[start : start + TOGETHER]
            found = rank_translations(
                loaded,  # type: ignore[arg-type]  # what does not translate is told so
                batch,
                to=to,
                beams=beams,
                n_best=n_best,
                length_penalty=length_penalty,
                max_new_tokens=max_new,
            )
            for source, best in zip(batch, found, strict=True):
                if as_json:
                    line = {"source": source, "translations": [asdict(each) for each in best]}
                    typer.echo(json.dumps(line, ensure_ascii=False))
                    continue
                for each in best:
                    score = Text(f"{each.score:8.3f}  ", style="dim") if n_best > 1 else Text()
                    console.print(score + Text(each.text), soft_wrap=True)
