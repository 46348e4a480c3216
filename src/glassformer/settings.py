"""The reader of all settings: plain values from JSON or TOML become frozen dataclasses.

Strict in both directions; every error is one sentence that names the setting.

    @dataclass(frozen=True, kw_only=True, slots=True)
    class Shape:
        dim: Count                          Annotated[int, Bounds(1, …)]
        dropout: Share = 0.0

        def __post_init__(self) -> None:
            check_bounds(self)              the same bounds when it is built in Python

    read_settings(Shape, {"dmi": 8})        … has no setting dmi. Did you mean dim?
    as_plain(Shape(dim=8))                  {"dim": 8, "dropout": 0.0}, which it reads back

A field's type says which values it takes, and bounds are part of the type. `__post_init__` checks
what concerns several fields at once, and raises ConfigError.
"""

import difflib
import math
import reprlib
from collections.abc import Iterable, Mapping
from dataclasses import MISSING, dataclass, fields, is_dataclass
from functools import lru_cache
from types import UnionType
from typing import Annotated, Any, Literal, TypeVar, Union, get_args, get_origin, get_type_hints

from glassformer.errors import ConfigError

T = TypeVar("T")
Number = float | int

_NAMES = {int: "a whole number", float: "a number", str: "a string", bool: "true or false"}
_MOST = 2**31 - 1  # for any size or count: more is a slip or an attack


@dataclass(frozen=True, slots=True)
class Bounds:
    """Limits of a number: `least` and `most` are allowed, `above` and `below` are not."""

    least: Number = -math.inf
    most: Number = math.inf
    above: Number = -math.inf
    below: Number = math.inf

    def admits(self, value: Number) -> bool:
        return self.least <= value <= self.most and self.above < value < self.below

    def __str__(self) -> str:
        limits = {
            "at least": self.least,
            "greater than": self.above,
            "at most": self.most,
            "less than": self.below,
        }
        if self.most >= _MOST:  # a limit that nobody reaches by accident
            limits.pop("at most")
        return " and ".join(f"{words} {n:g}" for words, n in limits.items() if math.isfinite(n))


@dataclass(frozen=True, slots=True)
class Tagged:
    """A table whose "kind" says which dataclass the rest of it becomes."""

    kinds: Mapping[str, type]


Count = Annotated[int, Bounds(least=1, most=_MOST)]
Whole = Annotated[int, Bounds(least=0, most=_MOST)]
Share = Annotated[float, Bounds(least=0, below=1)]
Positive = Annotated[float, Bounds(above=0)]
NonNegative = Annotated[float, Bounds(least=0)]


def read_settings(kind: type[T], values: Any, what: str = "The config", where: str = "") -> T:
    """Build the dataclass from these values; errors name their source `what` and key `where`."""
    if not isinstance(values, Mapping):
        name = where.removesuffix(".") or what
        raise ConfigError(f"{name} must be a table of settings; got {quote(values)}.")
    known = {each.name: each for each in fields(kind)}  # type: ignore[arg-type]
    check_names(values, known, what, where)
    for name, each in known.items():
        if each.default is MISSING and each.default_factory is MISSING and name not in values:
            raise ConfigError(f"{what} must have the setting {where}{name}; it is missing.")
    hints = _hints(kind)
    return kind(**{n: _read(hints[n], v, what, f"{where}{n}") for n, v in values.items()})


def as_plain(settings: Any, *, keep_none: bool = True) -> dict[str, Any]:
    """The values of a dataclass, for JSON and TOML; `read_settings` reads them back."""

    def convert(hint: Any, value: Any) -> Any:
        if is_dataclass(value) and not isinstance(value, type):
            tagged = _find_note(hint, Tagged)
            tag = {} if tagged is None else {"kind": _find_kind(tagged, value)}
            return tag | as_plain(value, keep_none=keep_none)
        if isinstance(value, Mapping):
            return {n: convert(None, v) for n, v in value.items() if keep_none or v is not None}
        return [convert(None, v) for v in value] if isinstance(value, list | tuple) else value

    values = {
        name: (hint, getattr(settings, name)) for name, hint in _hints(type(settings)).items()
    }
    return {n: convert(*each) for n, each in values.items() if keep_none or each[1] is not None}


def check_names(
    names: Iterable[str], known: Iterable[str], what: str = "The config", where: str = ""
) -> None:
    """Reject a setting that does not exist, and suggest one that does."""
    known = list(known)
    for name in names:
        if name not in known:
            near = difflib.get_close_matches(str(name)[:50], known, n=1, cutoff=0.5)
            raise ConfigError(
                f"{what} has no setting {where}{str(name)[:50]}. "
                + (f"Did you mean {where}{near[0]}?" if near else f"Known: {', '.join(known)}.")
            )


def check_choice(value: Any, choices: Iterable[str], where: str) -> None:
    """Reject a word that is not one of the choices, and suggest one that is."""
    choices = tuple(choices)
    if not isinstance(value, str) or value not in choices:
        near = difflib.get_close_matches(str(value)[:50], choices, n=1)
        raise ConfigError(
            f"{where} must be one of {', '.join(choices)}; got {quote(value)}."
            + (f" Did you mean {near[0]!r}?" if near else "")
        )


def check_bounds(settings: Any, where: str = "") -> None:
    """Reject a dataclass in which a number or a word is not what its type allows."""
    for name, hint in _hints(type(settings)).items():
        value = getattr(settings, name, None)
        choices = _find_choices(hint)
        if choices and value is not None:
            check_choice(value, choices, f"{where}{name}")
        bounds = _find_note(hint, Bounds)
        if bounds is not None and isinstance(value, int | float):
            _check(bounds, value, f"{where}{name}")


def quote(value: Any) -> str:
    """A value for a sentence: as Python writes it, but short."""
    short = reprlib.Repr()
    short.maxstring = short.maxother = 80
    return short.repr(value)


def summarize_error(error: BaseException) -> str:
    """The message of a library's error in one short line, without a full stop."""
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
        tagged = _find_note(hint, Tagged)
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
        check_choice(value, parts, where)
        return value
    if origin is dict or hint is dict:
        if not isinstance(value, Mapping):
            raise ConfigError(f"{where} must be a table of settings; got {quote(value)}.")
        return dict(value)
    return _read_plain(hint, value, where)


def _read_plain(kind: Any, value: Any, where: str) -> Any:
    is_whole = isinstance(value, int) and not isinstance(value, bool)
    if kind is float and is_whole and abs(value) < 2**63:
        value = float(value)
    if not isinstance(value, kind) or (isinstance(value, bool) and kind is not bool):
        raise ConfigError(f"{where} must be {_NAMES[kind]}; got {quote(value)}.")
    if kind is int and abs(value) >= 2**63:
        raise ConfigError(f"{where} must be a whole number of 64 bits; got {quote(value)}.")
    if kind is float and not math.isfinite(value):
        raise ConfigError(f"{where} must be a finite number; got {value}.")
    return value


def _read_union(parts: tuple[Any, ...], value: Any, what: str, where: str) -> Any:
    if value is None and type(None) in parts:
        return None
    several = [part for part in parts if part is not type(None)]
    fitting = [part for part in several if type(value) is _unwrap(part)]
    return _read((fitting or several)[0], value, what, where)


def _read_tagged(tagged: Tagged, value: Any, what: str, where: str) -> Any:
    rest = dict(value) if isinstance(value, Mapping) else {}
    name = rest.pop("kind", None)
    check_choice(name, tagged.kinds, f"{where}.kind")
    return read_settings(tagged.kinds[str(name)], rest, what, f"{where}.")


def _check(bounds: Bounds, value: Number, where: str) -> None:
    if not bounds.admits(value):
        limits = f"at most {bounds.most:,}" if value > bounds.most else str(bounds)
        raise ConfigError(f"{where} must be {limits}; got {quote(value)}.")


def _find_note(hint: Any, kind: type[T]) -> T | None:
    """The bounds or tags of a field's type, even if the field may be None."""
    if get_origin(hint) in (Union, UnionType):
        inside = (_find_note(part, kind) for part in get_args(hint))
        return next((note for note in inside if note is not None), None)
    notes = getattr(hint, "__metadata__", ())
    return next((note for note in notes if isinstance(note, kind)), None)


def _find_kind(tagged: Tagged, value: Any) -> str:
    return next(name for name, kind in tagged.kinds.items() if type(value) is kind)


def _find_choices(hint: Any) -> tuple[str, ...]:
    if get_origin(hint) in (Union, UnionType):
        return next((words for part in get_args(hint) if (words := _find_choices(part))), ())
    return get_args(hint) if get_origin(hint) is Literal else ()


def _unwrap(hint: Any) -> Any:
    return get_args(hint)[0] if get_origin(hint) is Annotated else hint
