"""Results as plain data: what code returned, in a form that can pass between processes.

No pickle: a value is flattened into leaves (arrays, numbers, texts) and the containers around
them, so that reading one can never run anything.
"""

from base64 import b64decode, b64encode
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor

MOST_BYTES = 1 << 22  # of numbers in one result
MOST_TEXT = 500
_MOST_DEPTH = 6
_MOST_ITEMS = 10_000
_MOST_RANK = 32
# What numbers are sent as; no other dtype is ever read back.
_DTYPES = ("<f8", "|b1", "|i1", "<i2", "<i4", "<i8", "|u1", "<u2", "<u4", "<u8")
_KINDS = ("tensor", "array", "number", "bool", "text", "none", "empty", "other")


@dataclass(frozen=True, slots=True)
class Leaf:
    """One thing that is not a container: its kind, its dtype, its numbers."""

    kind: str  # tensor, array, number, bool, text, none, empty, other
    dtype: str
    data: np.ndarray
    text: str = ""

    @property
    def shape(self) -> tuple[int, ...]:
        return self.data.shape

    @property
    def form(self) -> Any:
        """What is left of a value without its numbers."""
        return self.kind, self.shape


@dataclass(frozen=True, slots=True)
class Group:
    """A tuple, a list or a dict, with its parts by name."""

    kind: str
    parts: dict[str, Any]

    @property
    def form(self) -> Any:
        """What is left of a value without its numbers."""
        return self.kind, {name: part.form for name, part in self.parts.items()}


Value = Leaf | Group
_NOTHING = np.zeros(0)


class TooLarge(Exception):
    """A result with more numbers than a grading ever needs."""


def to_plain(value: Any, most_bytes: int = MOST_BYTES) -> Value:
    """A result as leaves and groups.

    >>> to_plain([1, 2.0]).parts["1"].kind
    'number'
    """
    return _Converter(most_bytes).value(value, 0)


@dataclass(slots=True)
class _Converter:
    """How much of a result has been flattened; the total is bounded."""

    most_bytes: int
    n_bytes: int = 0
    n_items: int = 0

    def value(self, value: Any, depth: int) -> Value:
        if isinstance(value, Tensor):
            return self._tensor(value)
        if isinstance(value, np.ndarray):
            if value.dtype.kind not in "biuf":
                return Leaf("other", "", _NOTHING, f"ndarray of {value.dtype}"[:MOST_TEXT])
            return Leaf("array", str(value.dtype), self._array(value))
        if isinstance(value, bool | np.bool_):
            return Leaf("bool", "bool", np.array(bool(value)))
        if isinstance(value, int | float | np.integer | np.floating):
            return Leaf("number", type(value).__name__[:MOST_TEXT], np.array(float(value)))
        if isinstance(value, str):
            return Leaf("text", "str", _NOTHING, str(value)[:MOST_TEXT])
        if value is None or value is Ellipsis:
            return Leaf("none" if value is None else "empty", "", _NOTHING)
        if isinstance(value, tuple | list | dict) and depth < _MOST_DEPTH:
            return self._group(value, depth)
        return Leaf("other", "", _NOTHING, type(value).__name__[:MOST_TEXT])

    def _group(self, value: Any, depth: int) -> Value:
        kind = next(k.__name__ for k in (tuple, list, dict) if isinstance(value, k))
        parts: dict[str, Value] = {}
        for name, part in value.items() if isinstance(value, dict) else enumerate(value):
            self.n_items += 1
            if self.n_items > _MOST_ITEMS:
                raise TooLarge
            parts[str(name)[:MOST_TEXT]] = self.value(part, depth + 1)
        return Group(kind, parts)

    def _tensor(self, tensor: Tensor) -> Leaf:
        dtype = str(tensor.dtype).removeprefix("torch.")
        try:
            self._count(tensor.numel())
            if not tensor.is_complex():
                return Leaf("tensor", dtype, self._numbers(tensor))
        except (RuntimeError, TypeError):  # sparse, nested, quantized, on the device meta
            pass
        kind = f"{type(tensor).__name__} ({dtype}, {tensor.layout}, {tensor.device})"
        return Leaf("other", dtype, _NOTHING, kind[:MOST_TEXT])

    def _numbers(self, tensor: Tensor) -> np.ndarray:
        tensor = tensor.detach().to("cpu")
        if tensor.is_floating_point():
            tensor = tensor.to(torch.float64)
        return tensor.resolve_conj().resolve_neg().contiguous().numpy().copy()

    def _array(self, array: np.ndarray) -> np.ndarray:
        self._count(array.size)
        plain = np.array(array, subok=False)
        little = plain.dtype.newbyteorder("<")
        return plain.astype(np.float64 if plain.dtype.kind == "f" else little)

    def _count(self, n_numbers: int) -> None:
        self.n_bytes += 8 * n_numbers
        if self.n_bytes > self.most_bytes:
            raise TooLarge


def as_data(value: Value) -> dict[str, Any]:
    """A value as JSON can carry it."""
    if isinstance(value, Group):
        return {
            "kind": value.kind,
            "parts": {name: as_data(part) for name, part in value.parts.items()},
        }
    return {
        "leaf": value.kind,
        "dtype": value.dtype,
        "text": value.text,
        "shape": list(value.data.shape),
        "numpy": value.data.dtype.str,
        "bytes": b64encode(np.ascontiguousarray(value.data).tobytes()).decode(),
    }


def from_data(data: dict[str, Any], depth: int = 0) -> Value:
    """The value again; ValueError, TypeError or KeyError if it never was one."""
    if depth > _MOST_DEPTH:
        raise ValueError("too deep")
    if "parts" in data:
        kind, parts = data["kind"], data["parts"]
        if kind not in ("tuple", "list", "dict") or len(parts) > _MOST_ITEMS:
            raise ValueError("not a group")
        inner = {
            replace_unprintable(name): from_data(part, depth + 1) for name, part in parts.items()
        }
        return Group(kind, inner)
    kind, dtype, text, shape = (data[name] for name in ("leaf", "dtype", "text", "shape"))
    if kind not in _KINDS or data["numpy"] not in _DTYPES or len(shape) > _MOST_RANK:
        raise ValueError("not a leaf")
    if any(len(said) > MOST_TEXT for said in (dtype, text)) or any(n < 0 for n in shape):
        raise ValueError("not a leaf")
    numbers = np.frombuffer(b64decode(data["bytes"], validate=True), np.dtype(data["numpy"]))
    return Leaf(kind, replace_unprintable(dtype), numbers.reshape(shape), replace_unprintable(text))


def replace_unprintable(text: str) -> str:
    """A text without anything that steers a terminal."""
    return "".join(c if c.isprintable() else "·" for c in text[:MOST_TEXT])


def flatten_numbers(value: Value) -> Leaf | None:
    """Nested lists of numbers as one array of numbers, or None if they are something else."""
    if isinstance(value, Leaf):
        return value
    parts = [flatten_numbers(part) for part in value.parts.values()]
    if any(p is None or p.kind not in ("number", "array", "tensor", "bool") for p in parts):
        return None
    if len({part.shape for part in parts if part}) > 1:
        return None
    numbers = np.array([part.data for part in parts if part is not None], dtype=np.float64)
    return Leaf("array", "float64", numbers)


def find_blanks(value: Value, path: str) -> list[str]:
    """Where the dots of a stub still stand.

    >>> find_blanks(to_plain([1, ...]), "scaled")
    ['scaled[1]']
    """
    if isinstance(value, Leaf):
        return [path] if value.kind == "empty" else []
    return [
        place
        for name, part in value.parts.items()
        for place in find_blanks(part, f"{path}[{name}]")
    ]
