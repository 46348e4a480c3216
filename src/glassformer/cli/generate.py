"""`glassformer generate`: a decoder continues a text, or answers a question."""

import json
import sys
from typing import Annotated

import typer

from glassformer.cli import model_options
from glassformer.cli.help import Command
from glassformer.languages import Language


def add(app: typer.Typer, language: Language) -> None:
    """Declare the command."""
    say = language.say

    @app.command("generate", cls=Command, help=say("generate.help"))
    def generate(
        prompt: Annotated[
            str | None, typer.Argument(metavar="[TEXT]", help=say("generate.text"))
        ] = None,
        model: Annotated[str | None, model_options.model_option(language, default="writer")] = None,
        chat: Annotated[bool, typer.Option("--chat", help=say("generate.chat"))] = False,
        max_new: Annotated[
            int | None, typer.Option("--max-new", metavar="N", help=say("generate.maxnew"))
        ] = None,
        temperature: Annotated[
            float, typer.Option("--temperature", metavar="T", help=say("generate.temperature"))
        ] = 0.0,
        top_k: Annotated[
            int | None, typer.Option("--top-k", metavar="K", help=say("generate.topk"))
        ] = None,
        top_p: Annotated[
            float | None, typer.Option("--top-p", metavar="P", help=say("generate.topp"))
        ] = None,
        min_p: Annotated[
            float | None, typer.Option("--min-p", metavar="P", help=say("generate.minp"))
        ] = None,
        repetition_penalty: Annotated[
            float | None,
            typer.Option("--repetition-penalty", metavar="R", help=say("generate.repetition")),
        ] = None,
        stop: Annotated[
            list[str] | None, typer.Option("--stop", metavar="TEXT", help=say("generate.stop"))
        ] = None,
        seed: Annotated[
            int | None, typer.Option("--seed", metavar="N", help=say("generate.seed"))
        ] = None,
        device: Annotated[str | None, model_options.device_option(language)] = None,
        dtype: Annotated[str | None, model_options.dtype_option(language)] = None,
        as_json: Annotated[bool, model_options.json_option(language)] = False,
    ) -> None:
        # Imported here: other commands need no models.
        from glassformer.generation import stream

        text = model_options.text_or_input(prompt, language)
        loaded = model_options.load_model(model, device, dtype, language, default="writer")
        pieces = stream(
            loaded,  # type: ignore[arg-type]  # what is no decoder is told so
            text,
            max_new_tokens=max_new,
            temperature=temperature,
            top_k=top_k,
            top_p=top_p,
            min_p=min_p,
            repetition_penalty=repetition_penalty,
            stop=stop or (),
            seed=seed,
            chat=chat,
        )
        if as_json:
            typer.echo(json.dumps({"prompt": text, "text": "".join(pieces)}, ensure_ascii=False))
            return
        if not chat:
            sys.stdout.write(text)
        for piece in pieces:
            sys.stdout.write(piece)
            sys.stdout.flush()
        sys.stdout.write("\n")
