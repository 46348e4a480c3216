"""`glassformer generate`: a decoder continues a text, or answers a question."""

import json
import re
import secrets
import sys
from collections.abc import Iterator
from itertools import chain
from typing import Annotated

import typer

from glassformer.cli import model_options
from glassformer.cli.help import Command
from glassformer.cli.progress import progress_bar
from glassformer.languages import Language

TEMPERATURE, TOP_P = 0.8, 0.95
NO_DRAFT = "none"
_LONGEST_TAIL = 800  # characters in which a loop is searched
_LOOP = re.compile(r"(.{8,}?)\1{3}\Z", re.DOTALL)


def add(app: typer.Typer, language: Language) -> None:
    """Declare the command."""
    say = language.say

    @app.command("generate", cls=Command, help=say("generate.help"))
    def generate(
        prompt: Annotated[
            str | None, typer.Argument(metavar="[TEXT]", help=say("generate.text"))
        ] = None,
        model: Annotated[
            str | None, model_options.model_option(language, default="storyteller")
        ] = None,
        chat: Annotated[bool, typer.Option("--chat", help=say("generate.chat"))] = False,
        max_new: Annotated[
            int | None, typer.Option("--max-new", metavar="N", help=say("generate.maxnew"))
        ] = None,
        temperature: Annotated[
            float, typer.Option("--temperature", metavar="T", help=say("generate.temperature"))
        ] = TEMPERATURE,
        top_k: Annotated[
            int | None, typer.Option("--top-k", metavar="K", help=say("generate.topk"))
        ] = None,
        top_p: Annotated[
            float, typer.Option("--top-p", metavar="P", help=say("generate.topp"))
        ] = TOP_P,
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
        draft: Annotated[
            str | None, typer.Option("--draft", metavar="MODEL", help=say("generate.draft"))
        ] = None,
        device: Annotated[str | None, model_options.device_option(language)] = None,
        dtype: Annotated[str | None, model_options.dtype_option(language)] = None,
        as_json: Annotated[bool, model_options.json_option(language)] = False,
    ) -> None:
        model_options.compile_ahead(device)
        # Imported here: help screens and usage errors must not load torch.
        from glassformer.compilation import notice_compilation
        from glassformer.generation import stream
        from glassformer.generation.continuation import check_stops, tokenizer_of
        from glassformer.generation.drafts import AUTO, LOOKUP, find_draft
        from glassformer.generation.prompts import check_max_new_tokens
        from glassformer.generation.sampling import Sampling

        Sampling(  # rejects what cannot be sampled by, before the model is loaded
            temperature=temperature,
            top_k=top_k,
            top_p=top_p,
            min_p=min_p,
            repetition_penalty=repetition_penalty,
        )
        check_max_new_tokens(max_new)
        check_stops(stop or ())
        text = model_options.text_or_input(prompt, language)
        if seed is None:  # drawn here, so that it can be shown and used again
            seed = secrets.randbelow(1_000_000)
        loaded = model_options.load_model(model, device, dtype, language, default="storyteller")
        known = {None: AUTO, LOOKUP: LOOKUP, NO_DRAFT: None}
        meant = (
            known[draft]
            if draft in known
            else model_options.load_model(draft, device, dtype, language)
        )
        guesser = find_draft(meant, loaded)
        if max_new is None and model is None:  # a story has an end: leave it the room
            n_tokens = len(tokenizer_of(loaded).encode(text))
            max_new = max(1, loaded.config.max_len - n_tokens)
        pieces = stream(
            loaded,  # type: ignore[arg-type]  # other models are refused by name
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
            draft=guesser,
        )
        pieces = until_repetition(pieces)
        with notice_compilation(lambda: progress_bar(say("generate.compiling"), total=None)):
            first = next(pieces, "")
        pieces = chain([first], pieces)
        if as_json:
            plain = {"prompt": text, "text": "".join(pieces), "seed": seed}
            typer.echo(json.dumps(plain, ensure_ascii=False))
            return
        if not chat:
            sys.stdout.write(text)
        for piece in pieces:
            sys.stdout.write(piece)
            sys.stdout.flush()
        sys.stdout.write("\n")
        sys.stdout.flush()
        if draft is not None and guesser is not None:
            counts = {"passes": guesser.n_passes, "held": guesser.n_held}
            typer.echo(say("generate.guesses", guesses=guesser.n_guesses, **counts), err=True)
        if temperature > 0:
            typer.echo(say("generate.repeat", seed=seed), err=True)


def until_repetition(pieces: Iterator[str]) -> Iterator[str]:
    """Pieces of text until a passage has been written four times in a row: a model in a loop.

    >>> "".join(until_repetition(iter(["and so on, "] * 50)))
    'and so on, and so on, and so on, and so on, '
    """
    tail = ""
    for piece in pieces:
        yield piece
        tail = (tail + piece)[-_LONGEST_TAIL:]
        if _LOOP.search(tail):
            return
