"""What follows from a mask, worked out once for all layers that are given it.

A model gives every layer the same mask. What a backend makes of it (a dense tensor, lists of
blocks) is kept for as long as the mask lives, until one of its tensors changes. It is never kept
where a change cannot be seen: tensors made in inference mode have no version, and what is made
while a CUDA graph is captured is overwritten when the graph runs.
"""

from collections.abc import Callable
from dataclasses import fields
from typing import Any, TypeVar
from weakref import WeakKeyDictionary

import torch
from torch import Tensor

from glassformer.functional.graph_capture import is_being_captured
from glassformer.functional.masks.mask import Mask

_PLAIN = (int, float, str, type(None))
_derived: WeakKeyDictionary[Mask, dict[str, tuple[Any, Any]]] = WeakKeyDictionary()

T = TypeVar("T")


def derive(mask: Mask, name: str, sizes: Any, make: Callable[[], T]) -> T:
    """What `make` gives, or gave for these sizes when the tensors of the mask were the same.

    Only the last result of each name is kept. It must not refer to the mask.

    >>> from glassformer.functional.masks import Padding
    >>> mask = Padding(torch.tensor([2, 3]))
    >>> first = derive(mask, "keys", 3, lambda: mask.dense(1, 3, batch=2))
    >>> derive(mask, "keys", 3, lambda: mask.dense(1, 3, batch=2)) is first
    True
    >>> _ = mask.lengths.add_(1)
    >>> derive(mask, "keys", 3, lambda: mask.dense(1, 3, batch=2)) is first
    False
    """
    versions = _versions(mask)
    if versions is None or is_being_captured():
        return make()
    state = (sizes, versions)
    kept = _derived.setdefault(mask, {})
    if name not in kept or kept[name][0] != state:
        with torch.inference_mode(False):  # it may be needed where gradients are
            kept[name] = (state, make())
    return kept[name][1]


def _versions(mask: Mask) -> tuple[Any, ...] | None:
    """How often each tensor was changed in place; None where that is not known."""
    found: list[Any] = []
    for field in fields(mask):
        value = getattr(mask, field.name)
        if isinstance(value, Mask):
            inner = _versions(value)
            if inner is None:
                return None
            found.append(inner)
        elif isinstance(value, Tensor):
            if value.is_inference():
                return None
            found.append(value._version)
        elif not isinstance(value, _PLAIN):
            return None
    return tuple(found)
