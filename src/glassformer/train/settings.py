"""Plain values, as TOML has them, into frozen dataclasses: strict, and helpful about what is wrong.

[schedule]                       Recipe.schedule.kind must be …
kind = "cosin"                   "schedule.kmd": did you mean "kind"?
"""

import difflib
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import MISSING, asdict, fields, is_dataclass
from types import UnionType
from typing import Any, Literal, TypeVar, Union, get_args, get_origin, get_type_hints

from glassformer.errors import ConfigError

T = TypeVar("T")


def settings(kind: type[T], values: Mapping[str, Any], where: str = "") -> T:
    """The dataclass with these values; what does not fit is named with its place."""
    known = {each.name: each for each in fields(kind)}  # type: ignore[arg-type]
    hints = get_type_hints(kind)
    for name in values:
        if name not in known:
            near = difflib.get_close_matches(name, known, n=1, cutoff=0.5)
            raise ConfigError(
                f"A recipe must have known settings; got {where}{name}. "
                + (f"Did you mean {where}{near[0]}?" if near else f"Known: {', '.join(known)}.")
            )
    for name, each in known.items():
        if each.default is MISSING and each.default_factory is MISSING and name not in values:
            raise ConfigError(f"A recipe must say {where}{name}; it does not.")
    return kind(**{n: _read(hints[n], v, f"{where}{n}") for n, v in values.items()})


def _read(hint: Any, value: Any, where: str) -> Any:
    origin, parts = get_origin(hint), get_args(hint)
    if is_dataclass(hint) and isinstance(hint, type):
        if not isinstance(value, Mapping):
            raise ConfigError(f"{where} must be a table of settings; got {value!r}.")
        return settings(hint, value, f"{where}.")
    if origin is tuple:
        listed = value if isinstance(value, list | tuple) else [value]
        return tuple(_read(parts[0], each, f"{where}.{i}") for i, each in enumerate(listed))
    if origin in (Union, UnionType):
        if value is None and type(None) in parts:
            return None
        several = [part for part in parts if part is not type(None)]
        fitting = [part for part in several if isinstance(part, type) and type(value) is part]
        return _read((fitting or several)[0], value, where)
    if origin is Literal:
        if value not in parts:
            raise ConfigError(
                f"{where} must be one of {', '.join(map(str, parts))}; got {value!r}."
            )
        return value
    if origin is dict or hint is dict:
        if not isinstance(value, Mapping):
            raise ConfigError(f"{where} must be a table of settings; got {value!r}.")
        return dict(value)
    if hint is float and isinstance(value, int) and not isinstance(value, bool):
        return float(value)
    kind: Any = hint
    if not isinstance(value, kind) or (isinstance(value, bool) and kind is not bool):
        names = {int: "a whole number", float: "a number", str: "a text", bool: "true or false"}
        raise ConfigError(f"{where} must be {names[kind]}; got {value!r}.")
    return value


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
        except tomllib.TOMLDecodeError:
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
        listed = isinstance(value, list | tuple) and value and isinstance(value[0], Mapping)
        if isinstance(value, Mapping):
            inside = as_toml(value, f"{where}{name}.")
            own = not inside.startswith("\n") and inside
            tables.append(f"\n[{where}{name}]\n{inside}" if own else inside)
        elif listed:
            for each in value:
                tables.append(f"\n[[{where}{name}]]\n{as_toml(each, f'{where}{name}.')}")
        elif value is not None:
            plain.append(f"{name} = {_toml(value)}")
    return "\n".join([*plain, *(t for t in tables if t)])


def plain(settings: Any) -> dict[str, Any]:
    """A dataclass as plain values, without what is None."""

    def kept(value: Any) -> Any:
        if isinstance(value, Mapping):
            return {n: kept(v) for n, v in value.items() if v is not None}
        return [kept(v) for v in value] if isinstance(value, list | tuple) else value

    return kept(asdict(settings))


def _toml(value: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str):
        escaped = value.replace("\\", "\\\\").replace('"', '\\"')
        return '"' + "".join(c if c.isprintable() else f"\\u{ord(c):04x}" for c in escaped) + '"'
    if isinstance(value, list | tuple):
        return f"[{', '.join(_toml(each) for each in value)}]"
    return repr(value)


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
    if not word.isdigit() or int(word) >= len(place):
        raise ConfigError(
            f"A list's part must be named by a number below {len(place)}; got {change!r}."
        )
    return int(word)
