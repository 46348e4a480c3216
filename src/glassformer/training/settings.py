"""Recipes as plain values: changes from the command line, TOML, and what differs.

Values become dataclasses in `glassformer.settings`; this is the way there and back.
"""

import re
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from datetime import date, time
from typing import Any

from glassformer.errors import ConfigError


def changed(values: Mapping[str, Any], changes: Sequence[str]) -> dict[str, Any]:
    """The values with `section.key=value` changes, each value written as in TOML or as bare text.

    >>> changed({"until": {"steps": 9}}, ["until.steps=5", "task=language"])
    {'until': {'steps': 5}, 'task': 'language'}
    """
    result = _copied(values)
    for change in changes:
        path, sign, text = change.partition("=")
        if not sign or not path.strip():
            raise ConfigError(f"A change must have the form section.key=value; got {change!r}.")
        try:
            value = tomllib.loads(f"x = {text}")["x"]
        except (ValueError, RecursionError):
            value = text.strip()
        place: Any = result
        *sections, last = path.strip().split(".")
        for section in sections:
            place = _inside(place, section, change)
        if isinstance(place, list):
            place[_index(place, last, change)] = value
        else:
            place[last] = value
    return result


def flattened(values: Mapping[str, Any], where: str = "") -> dict[str, Any]:
    """Nested tables as one, with dotted keys.

    >>> flattened({"a": {"b": 1, "c": [2]}})
    {'a.b': 1, 'a.c': [2]}
    """
    flat = {}
    for name, value in values.items():
        if isinstance(value, Mapping):
            flat |= flattened(value, f"{where}{name}.")
        else:
            flat[f"{where}{name}"] = list(value) if isinstance(value, tuple) else value
    return flat


def as_toml(values: Mapping[str, Any], where: str = "") -> str:
    """The values as TOML; None is left out.

    >>> print(as_toml({"seed": 1, "data": {"train": [{"text": "a"}]}}))
    seed = 1
    <BLANKLINE>
    [[data.train]]
    text = "a"
    """
    plain, tables = [], []
    for name, value in values.items():
        is_list = isinstance(value, list | tuple) and bool(value)
        listed = is_list and all(isinstance(each, Mapping) for each in value)
        if isinstance(value, Mapping):
            place = f"{where}{_key(name)}"
            inside = as_toml(value, f"{place}.")
            own = not value or (not inside.startswith("\n") and inside)
            tables.append(f"\n[{place}]\n{inside}" if own else inside)
        elif listed:
            for each in value:
                place = f"{where}{_key(name)}"
                tables.append(f"\n[[{place}]]\n{as_toml(each, f'{place}.')}")
        elif value is not None:
            plain.append(f"{_key(name)} = {_toml(value)}")
    return "\n".join([*plain, *(t for t in tables if t)])


def plain(settings: Any) -> dict[str, Any]:
    """A dataclass as plain values, without what is None."""

    def kept(value: Any) -> Any:
        if isinstance(value, Mapping):
            return {n: kept(v) for n, v in value.items() if v is not None}
        return [kept(v) for v in value] if isinstance(value, list | tuple) else value

    return kept(asdict(settings))


def _key(name: str) -> str:
    return name if re.fullmatch(r"[A-Za-z0-9_-]+", name) else _toml(name)


def _toml(value: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str):
        escaped = value.replace("\\", "\\\\").replace('"', '\\"')
        return '"' + "".join(c if c.isprintable() else f"\\U{ord(c):08x}" for c in escaped) + '"'
    if isinstance(value, list | tuple):
        return f"[{', '.join(_toml(each) for each in value)}]"
    if isinstance(value, Mapping):
        return f"{{{', '.join(f'{_key(n)} = {_toml(each)}' for n, each in value.items())}}}"
    return value.isoformat() if isinstance(value, date | time) else repr(value)


def _copied(values: Any) -> Any:
    if isinstance(values, Mapping):
        return {name: _copied(value) for name, value in values.items()}
    return [_copied(each) for each in values] if isinstance(values, list | tuple) else values


def _inside(place: Any, section: str, change: str) -> Any:
    if isinstance(place, list):
        return place[_index(place, section, change)]
    inner = place.setdefault(section, {})
    if not isinstance(inner, dict | list):
        raise ConfigError(f"{section} must be a table to change what is in it; got {change!r}.")
    return inner


def _index(place: list, word: str, change: str) -> int:
    if not re.fullmatch("[0-9]{1,9}", word) or int(word) >= len(place):
        raise ConfigError(
            f"A list's part must be named by a number below {len(place)}; got {change!r}."
        )
    return int(word)
