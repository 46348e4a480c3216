"""Plain values, as JSON and TOML have them, into frozen dataclasses: strict, with one sentence for
what does not fit.

    @dataclass(frozen=True, kw_only=True, slots=True)
    class Shape:
        dim: Count                          Annotated[int, Bounds(1, …)]
        dropout: Share = 0.0

        def __post_init__(self) -> None:
            check_bounds(self)              the same bounds for those who build it in Python

    read_settings(Shape, {"dmi": 8})        … has no setting dmi. Did you mean dim?

Types decide what a value may be; bounds are part of the type. What concerns several fields at once
is checked in `__post_init__`, which raises ConfigError.
"""

import difflib
import math
import reprlib
from collections.abc import Mapping
from dataclasses import MISSING, dataclass, fields, is_dataclass
from functools import lru_cache
from types import UnionType
from typing import Annotated, Any, Literal, TypeVar, Union, get_args, get_origin, get_type_hints

from glassformer.errors import ConfigError

T = TypeVar("T")
Number = float | int

_NAMES = {int: "a whole number", float: "a number", str: "a text", bool: "true or false"}
_MOST = 2**31 - 1  # of any size or count: what lies above is a slip or an attack


@dataclass(frozen=True, slots=True)
class Bounds:
    """Where a number must lie; `below` and `above` are not reached themselves."""

    least: Number = -math.inf
    most: Number = math.inf
    above: Number = -math.inf
    below: Number = math.inf

    def admit(self, value: Number) -> bool:
        return self.least <= value <= self.most and self.above < value < self.below

    def __str__(self) -> str:
        limits = {
            "at least": self.least,
            "greater than": self.above,
            "at most": self.most,
            "less than": self.below,
        }
        if self.most >= _MOST:  # the limit that nobody meets by chance
            limits.pop("at most")
        return " and ".join(f"{words} {n:g}" for words, n in limits.items() if math.isfinite(n))


@dataclass(frozen=True, slots=True)
class Tagged:
    """A table whose "kind" names the dataclass that the rest of it is read into."""

    kinds: Mapping[str, type]


Count = Annotated[int, Bounds(least=1, most=_MOST)]
Whole = Annotated[int, Bounds(least=0, most=_MOST)]
Share = Annotated[float, Bounds(least=0, below=1)]
Positive = Annotated[float, Bounds(above=0)]
NonNegative = Annotated[float, Bounds(least=0)]


def read_settings(kind: type[T], values: Any, what: str = "The config", where: str = "") -> T:
    """The dataclass with these values; `what` and `where` name the place of one that is wrong."""
    if not isinstance(values, Mapping):
        name = where.removesuffix(".") or what
        raise ConfigError(f"{name} must be a table of settings; got {shown(values)}.")
    known = {each.name: each for each in fields(kind)}  # type: ignore[arg-type]
    for name in values:
        if name not in known:
            near = difflib.get_close_matches(str(name)[:50], known, n=1, cutoff=0.5)
            raise ConfigError(
                f"{what} has no setting {where}{str(name)[:50]}. "
                + (f"Did you mean {where}{near[0]}?" if near else f"Known: {', '.join(known)}.")
            )
    for name, each in known.items():
        if each.default is MISSING and each.default_factory is MISSING and name not in values:
            raise ConfigError(f"{what} must have the setting {where}{name}; it is missing.")
    hints = _hints(kind)
    return kind(**{n: _read(hints[n], v, what, f"{where}{n}") for n, v in values.items()})


def check_bounds(settings: Any, where: str = "") -> None:
    """Refuse a dataclass of which a number, or a word, is not what its type allows."""
    for name, hint in _hints(type(settings)).items():
        value = getattr(settings, name, None)
        words = _words(hint)
        if words and value is not None and value not in words:
            raise _not_one_of(f"{where}{name}", words, value)
        bounds = _bounds(hint)
        if bounds is not None and isinstance(value, int | float):
            _check(bounds, value, f"{where}{name}")


def shown(value: Any) -> str:
    """A value in a sentence: as Python writes it, and short."""
    short = reprlib.Repr()
    short.maxstring = short.maxother = 80
    return short.repr(value)


def said(error: BaseException) -> str:
    """What a library's error says, in one short line without a full stop."""
    words = " ".join(str(error).split()) or type(error).__name__
    return (words if len(words) <= 300 else f"{words[:300]}…").rstrip(".")


@lru_cache(maxsize=64)
def _hints(kind: type) -> dict[str, Any]:
    hints = get_type_hints(kind, include_extras=True)
    return {each.name: hints[each.name] for each in fields(kind)}


def _read(hint: Any, value: Any, what: str, where: str) -> Any:
    origin, parts = get_origin(hint), get_args(hint)
    if origin is Annotated:
        inner, *notes = parts
        tagged = next((note for note in notes if isinstance(note, Tagged)), None)
        if tagged is not None:
            return None if value is None else _read_tagged(tagged, value, what, where)
        read = _read(inner, value, what, where)
        for note in notes:
            if isinstance(note, Bounds) and read is not None:
                _check(note, read, where)
        return read
    if is_dataclass(hint) and isinstance(hint, type):
        return read_settings(hint, value, what, f"{where}.")
    if origin is tuple:
        listed = value if isinstance(value, list | tuple) else [value]
        return tuple(_read(parts[0], each, what, f"{where}.{i}") for i, each in enumerate(listed))
    if origin in (Union, UnionType):
        return _read_union(parts, value, what, where)
    if origin is Literal:
        if not isinstance(value, str) or value not in parts:
            raise _not_one_of(where, parts, value)
        return value
    if origin is dict or hint is dict:
        if not isinstance(value, Mapping):
            raise ConfigError(f"{where} must be a table of settings; got {shown(value)}.")
        return dict(value)
    return _read_plain(hint, value, where)


def _read_plain(kind: Any, value: Any, where: str) -> Any:
    is_whole = isinstance(value, int) and not isinstance(value, bool)
    if kind is float and is_whole and abs(value) < 2**63:
        value = float(value)
    if not isinstance(value, kind) or (isinstance(value, bool) and kind is not bool):
        raise ConfigError(f"{where} must be {_NAMES[kind]}; got {shown(value)}.")
    if kind is int and abs(value) >= 2**63:
        raise ConfigError(f"{where} must be a whole number of 64 bits; got {shown(value)}.")
    if kind is float and not math.isfinite(value):
        raise ConfigError(f"{where} must be a finite number; got {value}.")
    return value


def _read_union(parts: tuple[Any, ...], value: Any, what: str, where: str) -> Any:
    if value is None and type(None) in parts:
        return None
    several = [part for part in parts if part is not type(None)]
    fitting = [part for part in several if type(value) is _plain(part)]
    return _read((fitting or several)[0], value, what, where)


def _read_tagged(tagged: Tagged, value: Any, what: str, where: str) -> Any:
    rest = dict(value) if isinstance(value, Mapping) else {}
    name = rest.pop("kind", None)
    if not isinstance(name, str) or name not in tagged.kinds:
        raise _not_one_of(f"{where}.kind", tuple(tagged.kinds), name)
    return read_settings(tagged.kinds[name], rest, what, f"{where}.")


def _check(bounds: Bounds, value: Number, where: str) -> None:
    if not bounds.admit(value):
        limits = f"at most {bounds.most:,}" if value > bounds.most else str(bounds)
        raise ConfigError(f"{where} must be {limits}; got {shown(value)}.")


def _bounds(hint: Any) -> Bounds | None:
    """Those of a field's type, also where it may be None."""
    if get_origin(hint) in (Union, UnionType):
        found = map(_bounds, get_args(hint))
        return next((each for each in found if each is not None), None)
    notes = getattr(hint, "__metadata__", ())
    return next((note for note in notes if isinstance(note, Bounds)), None)


def _words(hint: Any) -> tuple[str, ...]:
    if get_origin(hint) in (Union, UnionType):
        return next((words for part in get_args(hint) if (words := _words(part))), ())
    return get_args(hint) if get_origin(hint) is Literal else ()


def _plain(hint: Any) -> Any:
    return get_args(hint)[0] if get_origin(hint) is Annotated else hint


def _not_one_of(where: str, words: tuple[str, ...], value: Any) -> ConfigError:
    near = difflib.get_close_matches(str(value)[:50], words, n=1)
    return ConfigError(
        f"{where} must be one of {', '.join(words)}; got {shown(value)}."
        + (f" Did you mean {near[0]!r}?" if near else "")
    )
