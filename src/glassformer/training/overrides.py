"""Settings changed on the command line: `--set section.key=value`."""

import copy
import re
import tomllib
from collections.abc import Mapping, Sequence
from typing import Any

from glassformer.errors import ConfigError


def apply_overrides(values: Mapping[str, Any], overrides: Sequence[str]) -> dict[str, Any]:
    """A copy of the values with `section.key=value` overrides, each in TOML or as a bare string.

    >>> apply_overrides({"until": {"steps": 9}}, ["until.steps=5", "task=language"])
    {'until': {'steps': 5}, 'task': 'language'}
    """
    result = copy.deepcopy(dict(values))
    for override in overrides:
        path, sign, text = override.partition("=")
        if not sign or not path.strip():
            raise ConfigError(f"An override has the form section.key=value; got {override!r}.")
        place: Any = result
        *sections, last = path.strip().split(".")
        for section in sections:
            place = _enter(place, section, override)
        if isinstance(place, list):
            place[_parse_index(place, last, override)] = _parse_value(text)
        else:
            place[last] = _parse_value(text)
    return result


def _parse_value(text: str) -> Any:
    try:
        return tomllib.loads(f"x = {text}")["x"]
    except (ValueError, RecursionError):
        return text.strip()


def _enter(place: Any, section: str, override: str) -> Any:
    if isinstance(place, list):
        return place[_parse_index(place, section, override)]
    inner = place.setdefault(section, {})
    if not isinstance(inner, dict | list):
        raise ConfigError(f"{section} is not a section; got {override!r}.")
    return inner


def _parse_index(place: list, word: str, override: str) -> int:
    if not re.fullmatch("[0-9]{1,9}", word) or int(word) >= len(place):
        raise ConfigError(
            f"A list item is addressed by an index below {len(place)}; got {override!r}."
        )
    return int(word)
