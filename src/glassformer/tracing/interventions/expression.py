"""Interventions written as text, as they print: `ablate(decoder.3.self, head=2) & skip(decoder.5)`.

Read as a formula, never run as code. What holds no trace and no tensor prints completely, and reads
as an equal value. In a file of interventions, `$0` names the first of the values beside the text.
"""

import re
from collections.abc import Sequence
from dataclasses import MISSING, fields
from typing import Any

from glassformer.errors import GlassformerError, InterventionError
from glassformer.functional.masks.expression import read_mask
from glassformer.languages import Language
from glassformer.tracing.interventions.numbers import parse_numbers
from glassformer.tracing.interventions.values import (
    Ablate,
    Changes,
    Freeze,
    Intervention,
    Knockout,
    Patch,
    Scale,
    Skip,
    Steer,
    Swap,
)

MOST_CHARACTERS = 100_000
MOST_INTERVENTIONS = 1000  # each is held against each other one
_CALL = re.compile(r"\s*(\w+)\s*\((.*)\)\s*", re.DOTALL)
_REFERENCE = re.compile(r"\$([0-9]{1,4})")
_WORDS = ("how", "what")
_FACTORS = ("factor", "scale", "softcap")
_HELD = ("of", "trace", "vector", "weights", "bias")  # a trace or tensors
_KINDS: dict[str, type[Intervention]] = {
    kind.__name__.lower(): kind
    for kind in (Ablate, Freeze, Knockout, Patch, Scale, Skip, Steer, Swap)
}
EXAMPLE = "ablate(decoder.3.self, head=2) & skip(decoder.5)"


def read_changes(text: str, held: Sequence[Any] = ()) -> Changes:
    """The interventions that a text describes; `held` are the values that it refers to.

    >>> print(read_changes("scale(decoder.1.mlp, factor=0.5) & knockout(decoder.2.self, keys=2:4)"))
    scale(decoder.1.mlp, factor=0.5) & knockout(decoder.2.self, keys=2:4)
    """
    if len(text) > MOST_CHARACTERS:
        raise InterventionError(
            f"Interventions must be written in at most {MOST_CHARACTERS:,} characters; got "
            f"{len(text):,}."
        )
    each = _split(text, "&")
    if len(each) > MOST_INTERVENTIONS:
        raise InterventionError(
            f"At most {MOST_INTERVENTIONS:,} interventions can be joined in one text; got "
            f"{len(each):,}."
        )
    return Changes.of([_read_one(one, held) for one in each])


def _split(text: str, mark: str) -> list[str]:
    """The parts of a text between marks that are outside of brackets."""
    parts, depth, start = [], 0, 0
    for i, letter in enumerate(text):
        depth += (letter in "([") - (letter in ")]")
        if letter == mark and depth == 0:
            parts.append(text[start:i])
            start = i + 1
    return [*parts, text[start:]]


def _read_one(text: str, held: Sequence[Any]) -> Intervention:
    found = _CALL.fullmatch(text)
    if found is None:
        raise InterventionError(
            f"An intervention is written as a call, {EXAMPLE} for example; got "
            f"{_shorten(text.strip())}."
        )
    name, inside = found[1].lower(), [each.strip() for each in _split(found[2], ",")]
    if name not in _KINDS:
        raise InterventionError(
            f"An intervention is one of {', '.join(_KINDS)}; got {_shorten(found[1])}."
        )
    make: Any = _KINDS[name]
    place, *rest = inside
    if not place or "=" in place:
        raise InterventionError(
            f"{name} begins with a place, {name}(decoder.3{'' if name == 'skip' else '.self'}) for "
            f"example; got {_shorten(text.strip())}."
        )
    known = [each.name for each in fields(make)][1:]
    options: dict[str, Any] = {}
    for each in rest:
        option, is_given, value = (part.strip() for part in each.partition("="))
        if option not in known or not is_given or option in options:
            raise InterventionError(
                f"{name} takes {', '.join(known)}, each at most once and as name=value; got "
                f"{_shorten(each)}."
            )
        options[option] = _read_value(f"{option} of {name}", option, value, held)
    for each in fields(make):
        if each.default is MISSING and each.name not in ("place", *options):
            raise _missing(name, each.name, text)
    return make(place, **options)


def _missing(name: str, option: str, text: str) -> InterventionError:
    if option in _HELD:
        return _without_text(f"{option} of {name}")
    return InterventionError(
        f"{name} needs a {option}, {option}=0.5 for example; got {_shorten(text.strip())}."
    )


def _without_text(what: str) -> InterventionError:
    return InterventionError(
        f"{what} is a trace or a tensor, which no text can hold: use gf.change, or gf.save_changes "
        "and the name of its file."
    )


def _read_value(what: str, option: str, value: str, held: Sequence[Any]) -> Any:
    if found := _REFERENCE.fullmatch(value):
        if int(found[1]) >= len(held):
            raise InterventionError(
                f"{what} refers to value {found[1]} of a file; there are {len(held)}."
            )
        return held[int(found[1])]
    if option in _WORDS or value == "same" or (option, value) == ("positions", "none"):
        return value
    if value == "none":
        return None
    if option in _HELD:
        raise _without_text(what)
    if option == "mask":
        try:
            return read_mask(value, Language("en"))
        except GlassformerError as error:
            raise InterventionError(f"{what} cannot be read. {error}") from None
    if option in _FACTORS:
        try:
            return float(value)
        except ValueError:
            raise InterventionError(f"{what} must be a number; got {_shorten(value)}.") from None
    numbers = parse_numbers(value)
    if numbers is None:
        raise InterventionError(
            f"{what} must be numbers: 3, 0 2 5 or 4:8 for example; got {_shorten(value)}."
        )
    return numbers


def _shorten(text: str) -> str:
    return repr(text[:60])
