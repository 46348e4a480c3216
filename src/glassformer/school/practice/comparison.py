"""Two results side by side: are they the same, and if not, where do they first part?"""

from dataclasses import dataclass
from typing import Any

import numpy as np

from glassformer.school.practice.plain_values import Group, Leaf, Value, flatten_numbers

_NUMERIC = ("tensor", "array", "number", "bool")
_MOST_SHOWN = 8  # rows and columns of a drawn matrix


@dataclass(frozen=True, slots=True)
class Difference:
    """The first thing that is not as it should be."""

    what: str  # type, keys, entries, shape, dtype, nan, value, text
    path: str  # which of the results, as a learner would write it
    expected: str = ""
    got: str = ""
    place: tuple[int, ...] = ()
    off: str = ""
    n_wrong: int = 0
    n_all: int = 0
    tables: dict[str, Any] | None = None


def find_difference(
    expected: Value,
    got: Value,
    *,
    names: tuple[str, ...] = (),
    tolerance: float = 1e-5,
    loose: bool = False,
) -> Difference | None:
    """How `got` first differs from `expected`; None if it does not."""
    if loose:
        flat_expected, flat_got = flatten_numbers(expected), flatten_numbers(got)
        expected = flat_expected if flat_expected is not None else expected
        got = flat_got if flat_got is not None else got
    path = names[0] if len(names) == 1 else "result"
    if isinstance(expected, Group) and expected.kind in ("tuple", "list"):
        labels = dict(zip(expected.parts, names, strict=False)) if len(names) > 1 else {}
    else:
        labels = {}
    return _find_difference(expected, got, path, labels, tolerance, loose)


def _find_difference(
    expected: Value, got: Value, path: str, labels: dict[str, str], tolerance: float, loose: bool
) -> Difference | None:
    if isinstance(expected, Group):
        if not isinstance(got, Group) or got.kind != expected.kind:
            return Difference("type", path, describe_type(expected), describe_type(got))
        if set(expected.parts) != set(got.parts):
            what = "keys" if expected.kind == "dict" else "entries"
            return Difference(what, path, _format_keys(expected), _format_keys(got))
        for name, part in expected.parts.items():
            below = labels.get(name) or f"{path}[{name if name.isdigit() else repr(name)}]"
            found = _find_difference(part, got.parts[name], below, {}, tolerance, loose)
            if found is not None:
                return found
        return None
    if isinstance(got, Group) or not _same_kind(expected, got, loose):
        return Difference("type", path, describe_type(expected), describe_type(got))
    if expected.kind == "text":
        same = expected.text == got.text
        return None if same else Difference("text", path, expected.text, got.text)
    if expected.kind not in _NUMERIC:
        return None
    if expected.shape != got.shape:
        return Difference("shape", path, format_shape(expected), format_shape(got))
    if not loose and expected.kind in ("tensor", "array") and expected.dtype != got.dtype:
        return Difference("dtype", path, expected.dtype, got.dtype)
    return _compare_numbers(expected, got, path, tolerance, loose)


def _compare_numbers(
    expected: Leaf, got: Leaf, path: str, tolerance: float, loose: bool
) -> Difference | None:
    a, b = expected.data.astype(np.float64), got.data.astype(np.float64)
    with np.errstate(invalid="ignore"):
        most = tolerance * (1 if loose else 1 + np.abs(a))
        wrong = ~((np.abs(a - b) <= most) & np.isfinite(a))
        wrong &= ~((a == b) | (np.isnan(a) & np.isnan(b)))  # the same ±∞ are equal, and so are NaNs
    if not wrong.any():
        return None
    nan = np.isnan(b) & ~np.isnan(a)
    place = tuple(int(i) for i in np.argwhere(nan if nan.any() else wrong)[0])
    return Difference(
        "nan" if nan.any() else "value",
        path,
        format_number(a[place]),
        format_number(b[place]),
        place,
        format_number(float(b[place]) - float(a[place])),
        int(wrong.sum()),
        int(wrong.size),
        _cut_tables(a, b, place),
    )


def _cut_tables(a: np.ndarray, b: np.ndarray, place: tuple[int, ...]) -> dict[str, Any] | None:
    """The matrix around the first wrong cell, cut to a size that can be drawn."""
    if not a.ndim:
        return None
    a, b = (np.atleast_2d(x[place[:-2]] if x.ndim > 2 else x) for x in (a, b))
    row, col = ((0, *place) if len(place) == 1 else place)[-2:]
    top, left = max(0, row - _MOST_SHOWN + 1), max(0, col - _MOST_SHOWN + 1)
    window = (slice(top, top + _MOST_SHOWN), slice(left, left + _MOST_SHOWN))
    return {
        "expected": _cells(a[window]),
        "yours": _cells(b[window]),
        "before": list(place[:-2]),
        "rows": list(range(top, top + a[window].shape[0])),
        "columns": list(range(left, left + a[window].shape[1])),
        "flat": len(place) == 1,
    }


def _cells(numbers: np.ndarray) -> list[list[float | str]]:
    # JSON has no word for these three.
    return [[x if np.isfinite(x) else str(x) for x in row] for row in numbers.tolist()]


def _same_kind(expected: Leaf, got: Leaf, loose: bool) -> bool:
    if expected.kind == got.kind:
        return True
    if loose:
        return expected.kind in _NUMERIC and got.kind in _NUMERIC
    if expected.kind == "array":  # NumPy makes scalars of what has no dimensions left
        return got.kind == "number" and not expected.shape
    return expected.kind == "number" and got.kind == "array" and not got.shape


def describe_type(value: Value) -> str:
    """What kind of thing this is, in Python's words.

    >>> from glassformer.school.practice.plain_values import to_plain
    >>> describe_type(to_plain((1.0, None)))
    'tuple of 2 (float, None)'
    """
    if isinstance(value, Group):
        inner = ", ".join(describe_type(part) for part in list(value.parts.values())[:4])
        return f"{value.kind} of {len(value.parts)} ({inner})"
    match value.kind:
        case "tensor":
            return "Tensor"
        case "array":
            return "ndarray"
        case "none":
            return "None"
        case "empty":
            return "..."
        case "other":
            return value.text
        case _:
            return value.dtype


def format_shape(leaf: Leaf) -> str:
    return f"({', '.join(map(str, leaf.shape))}{',' * (len(leaf.shape) == 1)})"


def format_number(value: float) -> str:
    """A number as a learner can compare it: five digits, no more."""
    return f"{float(value):.5g}".replace("-", "−").replace("inf", "∞")


def _format_keys(group: Group) -> str:
    names = group.parts if group.kind == "dict" else [len(group.parts)]
    return ", ".join(str(name) for name in names)
