"""`glassformer steps`: attention in five steps, with numbers that the user types."""

import json
import math
import re
from typing import Annotated, Any

import torch
import typer

from glassformer.attention import RowArithmetic
from glassformer.cli import saved
from glassformer.cli.help import Command
from glassformer.cli.terminal import terminal
from glassformer.errors import ConfigError
from glassformer.languages import Language
from glassformer.render import draw_steps


def add(app: typer.Typer, language: Language) -> None:
    """Declare the command."""
    say = language.say

    @app.command("steps", cls=Command, help=say("steps.help"))
    def steps(
        dots: Annotated[str, typer.Argument(metavar="NUMBERS", help=say("steps.dots"))],
        width: Annotated[int, typer.Option("--width", metavar="D", help=say("steps.width"))] = 64,
        tokens: Annotated[
            str | None, typer.Option("--tokens", metavar="WORDS", help=say("steps.tokens"))
        ] = None,
        hide: Annotated[
            str | None, typer.Option("--hide", metavar="PLACES", help=say("steps.hide"))
        ] = None,
        values: Annotated[
            str | None, typer.Option("--values", metavar="ROWS", help=say("steps.values"))
        ] = None,
        as_json: Annotated[bool, saved.json_option(language)] = False,
    ) -> None:
        numbers = _numbers(dots, "NUMBERS", language)
        names = tokens.split() if tokens is not None else [str(i) for i in range(len(numbers))]
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
        if as_json:
            typer.echo(json.dumps(_finite(row.as_dict())))
        else:
            terminal().print(draw_steps(row, names, language=language))


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
