"""`glassformer steps`: attention in five steps, with typed numbers or a model's own."""

import re
from typing import Annotated, Any

import typer

from glassformer.cli import model_options
from glassformer.cli.help import Command
from glassformer.cli.json_text import to_json
from glassformer.cli.terminal import terminal
from glassformer.cli.trace_options import ViewRequest, open_trace, options
from glassformer.errors import ConfigError
from glassformer.languages import Language


def add(app: typer.Typer, language: Language) -> None:
    """Declare the command."""
    say, shared = language.say, options(language)

    @app.command("steps", cls=Command, help=say("steps.help"))
    def steps(
        words: Annotated[
            str | None, typer.Argument(metavar="[NUMBERS|TEXT]", help=say("steps.words"))
        ] = None,
        width: Annotated[
            int | None, typer.Option("--width", metavar="D", help=say("steps.width"))
        ] = None,
        tokens: Annotated[
            str | None, typer.Option("--tokens", metavar="WORDS", help=say("steps.tokens"))
        ] = None,
        hide: Annotated[
            str | None, typer.Option("--hide", metavar="PLACES", help=say("steps.hide"))
        ] = None,
        values: Annotated[
            str | None, typer.Option("--values", metavar="ROWS", help=say("steps.values"))
        ] = None,
        model: Annotated[
            str | None, model_options.model_option(language, default=say("look.usual"))
        ] = None,
        target: Annotated[str | None, shared["target"]] = None,
        to: Annotated[str | None, shared["to"]] = None,
        trace: Annotated[str | None, shared["trace"]] = None,
        run: Annotated[int | None, shared["run"]] = None,
        site: Annotated[str | None, shared["site"]] = None,
        layer: Annotated[int | None, shared["layer"]] = None,
        head: Annotated[int | None, shared["head"]] = None,
        word: Annotated[
            str | None, typer.Option("--word", metavar="TOKEN", help=say("steps.word"))
        ] = None,
        device: Annotated[str | None, model_options.device_option(language)] = None,
        dtype: Annotated[str | None, model_options.dtype_option(language)] = None,
        plain: Annotated[bool, model_options.json_option(language)] = False,
    ) -> None:
        typed = {"--width": width, "--tokens": tokens, "--hide": hide, "--values": values}
        chosen = {
            "--target": target,
            "--to": to,
            "--run": run,
            "--site": site,
            "--layer": layer,
            "--head": head,
            "--word": word,
        }
        names_typed, names_chosen = _name_options(typed, language), _name_options(chosen, language)
        is_text = words is not None and not names_typed and _is_text(words)
        if model is None and trace is None and not is_text:
            if names_chosen:
                raise ConfigError(say("steps.error.typed", names=names_chosen))
            # Imported here: help screens and usage errors must not load torch.
            from glassformer.cli.typed_steps import TypedNumbers
            from glassformer.render.terminal.steps import draw_steps

            numbers = TypedNumbers(dots=words, width=width, tokens=tokens, hide=hide, values=values)
            row, keys = numbers.read_row(language)
            if plain:
                typer.echo(to_json(row.as_dict()))
            else:
                terminal().print(draw_steps(row, keys, language=language))
            return
        if names_typed:
            raise ConfigError(say("steps.error.model", names=names_typed))
        request = ViewRequest(
            text=words,
            target=target,
            to=to,
            model=model,
            trace=trace,
            run=run,
            device=device,
            dtype=dtype,
        )
        _show_recorded(request, site, layer, head, word, plain, language)


def _name_options(options: dict[str, Any], language: Language) -> str:
    names = [name for name, value in options.items() if value is not None]
    return language.say("list.comma").join(names)


def _is_text(words: str) -> bool:
    """Whether most words are no numbers: a sentence for a model, not dot products.

    >>> _is_text("The cat sat"), _is_text("12.5 30.8 x")
    (True, False)
    """
    pieces = [piece for piece in re.split(r"[\s,;]+", words) if piece]
    return 2 * sum(not _is_number(piece) for piece in pieces) > len(pieces)


def _is_number(word: str) -> bool:
    try:
        float(word.replace("−", "-"))
    except ValueError:
        return False
    return True


def _show_recorded(
    request: ViewRequest,
    site: str | None,
    layer: int | None,
    head: int | None,
    word: str | None,
    plain: bool,
    language: Language,
) -> None:
    """The same steps with one head's own numbers; without a word, those of the last token."""
    from glassformer.render.difference import output_difference
    from glassformer.render.focus import choose_focus, find_token
    from glassformer.render.sampled_queries import sample_queries
    from glassformer.render.terminal.picture import draw_row
    from glassformer.render.tokens import token_names

    trace = open_trace(request, language)
    some, number, *_ = choose_focus(sample_queries(trace), site=site, layer=layer, head=head)
    chosen = trace[some.name]
    queries, keys = token_names(trace, chosen)
    query = len(queries) - 1 if word is None else find_token(word, queries, language)
    if not plain:
        terminal().print(draw_row(trace, chosen, number, query, language=language))
        return
    where = {"site": chosen.name, "head": number, "query": query, "token": queries[query]}
    row = chosen.row(number, query).as_dict()
    typer.echo(
        to_json({**where, "keys": keys, "difference": output_difference(chosen), "row": row})
    )
