"""Results as plain data: what code returned, in a form that can pass between processes.

No pickle: a value is taken apart into leaves (arrays, numbers, texts) and the containers around
them, so that reading one can never run anything.
"""

from base64 import b64decode, b64encode
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor

_MOST_BYTES = 1 << 24
_MOST_DEPTH = 6
_MOST_ITEMS = 10_000
_MOST_TEXT = 500


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


@dataclass(frozen=True, slots=True)
class Group:
    """A tuple, a list or a dict, with its parts by name."""

    kind: str
    parts: dict[str, Any]


Value = Leaf | Group
_NOTHING = np.zeros(0)


class TooLarge(Exception):
    """A result with more numbers than a grading ever needs."""


def taken_apart(value: Any, depth: int = 0) -> Value:
    """A result as leaves and groups.

    >>> taken_apart([1, 2.0]).parts["1"].kind
    'number'
    """
    if isinstance(value, Tensor):
        return _tensor(value)
    if isinstance(value, np.ndarray):
        if value.dtype.kind not in "biuf":
            return Leaf("other", str(value.dtype), _NOTHING, f"ndarray of {value.dtype}")
        return Leaf("array", str(value.dtype), _kept(np.array(value)))
    if isinstance(value, bool | np.bool_):
        return Leaf("bool", "bool", np.array(bool(value)))
    if isinstance(value, int | float | np.integer | np.floating):
        return Leaf("number", type(value).__name__, np.array(float(value)))
    if isinstance(value, str):
        return Leaf("text", "str", _NOTHING, value[:_MOST_TEXT])
    if value is None or value is Ellipsis:
        return Leaf("none" if value is None else "empty", "", _NOTHING)
    if isinstance(value, tuple | list | dict) and depth < _MOST_DEPTH and len(value) <= _MOST_ITEMS:
        pairs = value.items() if isinstance(value, dict) else enumerate(value)
        parts = {str(name): taken_apart(part, depth + 1) for name, part in pairs}
        kind = next(k.__name__ for k in (tuple, list, dict) if isinstance(value, k))
        return Group(kind, parts)
    return Leaf("other", "", _NOTHING, type(value).__name__)


def _tensor(tensor: Tensor) -> Leaf:
    dtype = str(tensor.dtype).removeprefix("torch.")
    try:
        return Leaf("tensor", dtype, _numbers(tensor))
    except (RuntimeError, TypeError):  # sparse, nested, quantized, on the device meta
        kind = f"{type(tensor).__name__} ({dtype}, {tensor.layout}, {tensor.device})"
        return Leaf("other", dtype, _NOTHING, kind)


def _numbers(tensor: Tensor) -> np.ndarray:
    if tensor.numel() * 8 > _MOST_BYTES:
        raise TooLarge
    tensor = tensor.detach().to("cpu")
    if tensor.is_floating_point():
        tensor = tensor.to(torch.float64)
    return tensor.resolve_conj().resolve_neg().contiguous().numpy().copy()


def _kept(array: np.ndarray) -> np.ndarray:
    if array.size * 8 > _MOST_BYTES:
        raise TooLarge
    return array.astype(np.float64) if array.dtype.kind == "f" else array


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


def from_data(data: dict[str, Any]) -> Value:
    """The value again."""
    if "parts" in data:
        return Group(data["kind"], {name: from_data(part) for name, part in data["parts"].items()})
    numbers = np.frombuffer(b64decode(data["bytes"]), dtype=np.dtype(data["numpy"]))
    return Leaf(data["leaf"], data["dtype"], numbers.reshape(data["shape"]), data["text"])


def flattened(value: Value) -> Leaf | None:
    """Nested lists of numbers as one array of numbers, or None if they are something else."""
    if isinstance(value, Leaf):
        return value
    parts = [flattened(part) for part in value.parts.values()]
    if any(p is None or p.kind not in ("number", "array", "tensor", "bool") for p in parts):
        return None
    if len({part.shape for part in parts if part}) > 1:
        return None
    numbers = np.array([part.data for part in parts if part is not None], dtype=np.float64)
    return Leaf("array", "float64", numbers)


def empty_places(value: Value, path: str) -> list[str]:
    """Where the dots of a stub still stand.

    >>> empty_places(taken_apart([1, ...]), "scaled")
    ['scaled[1]']
    """
    if isinstance(value, Leaf):
        return [path] if value.kind == "empty" else []
    return [
        place
        for name, part in value.parts.items()
        for place in empty_places(part, f"{path}[{name}]")
    ]
