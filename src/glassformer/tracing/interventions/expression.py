"""Interventions written as text, as they print: `ablate(decoder.3.self, head=2) & skip(decoder.5)`.

Read as a formula, never run as code. Those that hold a trace or a tensor have no text.
"""

import re
from collections.abc import Callable
from typing import Any

from glassformer.errors import InterventionError
from glassformer.tracing.interventions.values import (
    Ablate,
    Changes,
    Intervention,
    Knockout,
    Scale,
    Skip,
    Swap,
)

_MOST_CHARACTERS = 10_000
_CALL = re.compile(r"\s*(\w+)\s*\(([^()]*)\)\s*")
_NUMBERS = re.compile(r"-?\d+(\s+-?\d+)*")
_SLICE = re.compile(r"(-?\d+)?:(-?\d+)?")
_KINDS: dict[str, tuple[Callable[..., Intervention], tuple[str, ...]]] = {
    "ablate": (Ablate, ("head", "how", "positions", "seed", "sequences")),
    "knockout": (Knockout, ("queries", "keys", "head", "sequences")),
    "scale": (Scale, ("factor", "head", "positions", "sequences")),
    "skip": (Skip, ("sequences",)),
    "swap": (Swap, ("scale", "softcap", "positions", "sequences")),
}
EXAMPLE = "ablate(decoder.3.self, head=2) & skip(decoder.5)"


def read_changes(text: str) -> Changes:
    """The interventions that a text describes.

    >>> print(read_changes("scale(decoder.1.mlp, factor=0.5) & knockout(decoder.2.self, keys=2:4)"))
    scale(decoder.1.mlp, factor=0.5) & knockout(decoder.2.self, keys=2:4)
    """
    if len(text) > _MOST_CHARACTERS:
        raise InterventionError(
            f"Interventions must be written in at most {_MOST_CHARACTERS:,} characters; got "
            f"{len(text):,}."
        )
    return Changes.of([_read_one(each) for each in text.split("&")])


def _read_one(text: str) -> Intervention:
    found = _CALL.fullmatch(text)
    if found is None:
        raise InterventionError(
            f"An intervention is written as a call, {EXAMPLE} for example; got {text.strip()!r}."
        )
    name, inside = found[1].lower(), [each.strip() for each in found[2].split(",")]
    if name not in _KINDS:
        raise InterventionError(
            f"Interventions that can be written are {', '.join(_KINDS)}; got {found[1]!r}. Others "
            "hold a trace or a tensor: use gf.change."
        )
    kind, known = _KINDS[name]
    place, *rest = inside
    if not place or "=" in place:
        raise InterventionError(
            f"{name} begins with a place, {name}(decoder.3{'' if name == 'skip' else '.self'}) for "
            f"example; got {text.strip()!r}."
        )
    options: dict[str, Any] = {}
    for each in rest:
        option, is_given, value = (part.strip() for part in each.partition("="))
        if option not in known or not is_given or option in options:
            raise InterventionError(
                f"{name} takes {', '.join(known)}, each at most once and as name=value; got "
                f"{each!r}."
            )
        options[option] = _read_value(name, option, value)
    if kind is Scale and "factor" not in options:
        raise InterventionError(
            f"scale needs a factor, factor=0.5 for example; got {text.strip()!r}."
        )
    return kind(place, **options)


def _read_value(name: str, option: str, value: str) -> Any:
    if option == "how" or value in ("none", "same"):
        return value
    if option in ("factor", "scale", "softcap"):
        try:
            return float(value)
        except ValueError:
            raise InterventionError(
                f"{option} of {name} must be a number; got {value!r}."
            ) from None
    if found := _SLICE.fullmatch(value):
        return slice(*(None if n is None else int(n) for n in found.groups()))
    if not _NUMBERS.fullmatch(value) or len(value) > 1000:
        raise InterventionError(
            f"{option} of {name} must be numbers: 3, 0 2 5 or 4:8 for example; got {value[:60]!r}."
        )
    numbers = [int(n) for n in value.split()]
    return numbers[0] if len(numbers) == 1 else numbers
