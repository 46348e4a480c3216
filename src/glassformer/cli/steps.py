"""`glassformer steps`: attention in five steps, with numbers that are typed, or a model's own."""

import math
import re
from typing import Annotated, Any

import torch
import typer

from glassformer.cli import model_options
from glassformer.cli.help import Command
from glassformer.cli.terminal import terminal
from glassformer.cli.trace_options import Wish, as_json, options, seen
from glassformer.errors import ConfigError
from glassformer.functional import RowArithmetic
from glassformer.languages import Language
from glassformer.render import draw_steps


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
        model: Annotated[str | None, model_options.model_option(language)] = None,
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
        if model is None and trace is None:
            if names := _given(chosen, language):
                raise ConfigError(say("steps.error.typed", names=names))
            _show_typed(words, width, tokens, hide, values, plain, language)
            return
        if names := _given(typed, language):
            raise ConfigError(say("steps.error.model", names=names))
        wish = Wish(
            text=words,
            target=target,
            to=to,
            model=model,
            trace=trace,
            run=run,
            device=device,
            dtype=dtype,
        )
        _show_recorded(wish, site, layer, head, word, plain, language)


def _given(options: dict[str, Any], language: Language) -> str:
    names = [name for name, value in options.items() if value is not None]
    return language.say("list.comma").join(names)


def _show_typed(
    text: str | None,
    width: int | None,
    tokens: str | None,
    hide: str | None,
    values: str | None,
    plain: bool,
    language: Language,
) -> None:
    say = language.say
    numbers = _numbers(text or "", "NUMBERS", language)
    names = tokens.split() if tokens is not None else [str(i) for i in range(len(numbers))]
    width = 64 if width is None else width
    if width < 1:
        raise ConfigError(say("steps.error.width", got=width))
    if len(names) != len(numbers):
        raise ConfigError(say("steps.error.tokens", n=len(numbers), got=len(names)))
    row = RowArithmetic.of_dots(
        torch.tensor(numbers, dtype=torch.float64),
        scale=1 / math.sqrt(width),
        allowed=_allowed(hide, len(numbers), language),
        v=_values(values, len(numbers), language),
    )
    if plain:
        typer.echo(as_json(_finite(row.as_dict())))
    else:
        terminal().print(draw_steps(row, names, language=language))


def _show_recorded(
    wish: Wish,
    site: str | None,
    layer: int | None,
    head: int | None,
    word: str | None,
    plain: bool,
    language: Language,
) -> None:
    """The same steps with what passed through a head; without a word, those of the last token."""
    from glassformer.render.difference import difference
    from glassformer.render.focus import choose, place_of
    from glassformer.render.sampled_queries import sampled
    from glassformer.render.terminal.picture import draw_row
    from glassformer.render.tokens import names_of

    found = seen(wish, language)
    some, number, *_ = choose(sampled(found), site=site, layer=layer, head=head)
    chosen = found[some.name]
    queries, keys = names_of(found, chosen)
    query = len(queries) - 1 if word is None else place_of(word, queries, language)
    if not plain:
        terminal().print(draw_row(found, chosen, number, query, language=language))
        return
    where = {"site": chosen.name, "head": number, "query": query, "token": queries[query]}
    row = _finite(chosen.row(number, query).as_dict())
    typer.echo(as_json({**where, "keys": keys, "difference": difference(chosen), "row": row}))


def _finite(value: Any) -> Any:
    """−∞ as null: JSON has no word for it."""
    if isinstance(value, dict):
        return {name: _finite(each) for name, each in value.items()}
    if isinstance(value, list):
        return [_finite(each) for each in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value


def _numbers(text: str, name: str, language: Language) -> list[float]:
    words = [word for word in re.split(r"[\s,;]+", text.replace("−", "-")) if word]
    try:
        found = [float(word) for word in words]
    except ValueError:
        found = []
    if not found or not all(map(math.isfinite, found)):
        raise ConfigError(language.say("steps.error.numbers", name=name, got=repr(text)))
    return found


def _allowed(hide: str | None, n: int, language: Language) -> torch.Tensor | None:
    if hide is None:
        return None
    places = _numbers(hide, "--hide", language)
    if any(place != int(place) or not 0 <= place < n for place in places):
        raise ConfigError(language.say("steps.error.hide", last=n - 1, got=repr(hide)))
    allowed = torch.ones(n, dtype=torch.bool)
    allowed[[int(place) for place in places]] = False
    return allowed


def _values(text: str | None, n: int, language: Language) -> torch.Tensor | None:
    if text is None:
        return None
    rows = [_numbers(row, "--values", language) for row in text.split(";") if row.strip()]
    if len(rows) != n or len({len(row) for row in rows}) != 1:
        raise ConfigError(language.say("steps.error.values", n=n, got=repr(text)))
    return torch.tensor(rows, dtype=torch.float64)
