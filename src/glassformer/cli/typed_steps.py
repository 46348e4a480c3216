"""Attention in five steps, from dot products typed on the command line."""

import math
import re
from dataclasses import dataclass

import torch
from jaxtyping import Bool, Float
from torch import Tensor

from glassformer.cli.worked_examples import SENTENCE, cat_row
from glassformer.errors import ConfigError
from glassformer.functional import RowArithmetic
from glassformer.languages import Language

_WIDTH = 64
_SEPARATORS = r"[\s,;]+"


@dataclass(frozen=True, kw_only=True)
class TypedNumbers:
    """What was typed: dot products of one query with every key, and what goes with them."""

    dots: str | None
    width: int | None
    tokens: str | None
    hide: str | None
    values: str | None

    def read_row(self, language: Language) -> tuple[RowArithmetic, list[str]]:
        """The five steps, and a name for each key; the worked example where nothing was typed."""
        if self == TypedNumbers(dots=None, width=None, tokens=None, hide=None, values=None):
            return cat_row(), list(SENTENCE)
        numbers = _read_numbers(self.dots or "", "NUMBERS", language)
        n = len(numbers)
        names = self.tokens.split() if self.tokens is not None else [str(i) for i in range(n)]
        width = _WIDTH if self.width is None else self.width
        if width < 1:
            raise ConfigError(language.say("steps.error.width", got=width))
        if len(names) != n:
            raise ConfigError(language.say("steps.error.tokens", n=n, got=len(names)))
        row = RowArithmetic.of_dots(
            torch.tensor(numbers, dtype=torch.float64),
            scale=1 / math.sqrt(width),
            allowed=_read_mask(self.hide, n, language),
            v=_read_values(self.values, n, language),
        )
        return row, names


def _read_numbers(text: str, name: str, language: Language) -> list[float]:
    words = [word for word in re.split(_SEPARATORS, text.replace("−", "-")) if word]
    try:
        numbers = [float(word) for word in words]
    except ValueError:
        numbers = []
    if not numbers or not all(map(math.isfinite, numbers)):
        raise ConfigError(language.say("steps.error.numbers", name=name, got=repr(text)))
    return numbers


def _read_mask(hide: str | None, n: int, language: Language) -> Bool[Tensor, "S"] | None:
    if hide is None:
        return None
    places = _read_numbers(hide, "--hide", language)
    if any(place != int(place) or not 0 <= place < n for place in places):
        raise ConfigError(language.say("steps.error.hide", last=n - 1, got=repr(hide)))
    allowed = torch.ones(n, dtype=torch.bool)
    allowed[[int(place) for place in places]] = False
    return allowed


def _read_values(text: str | None, n: int, language: Language) -> Float[Tensor, "S E"] | None:
    if text is None:
        return None
    rows = [_read_numbers(row, "--values", language) for row in text.split(";") if row.strip()]
    if len(rows) != n or len({len(row) for row in rows}) != 1:
        raise ConfigError(language.say("steps.error.values", n=n, got=repr(text)))
    return torch.tensor(rows, dtype=torch.float64)
