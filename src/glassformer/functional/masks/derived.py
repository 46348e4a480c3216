"""What follows from a mask, worked out once for all layers that are given it.

A model gives every layer the same mask. What a backend makes of it (a dense tensor, lists of
blocks) is kept for as long as the mask lives, until one of its tensors changes, or another stream
of a GPU asks, for which it may not be complete. It is never kept where it would be wrong later:
tensors made in inference mode have no version, what is made while a CUDA graph is captured is
overwritten when the graph runs, and who observes operations (to trace or count them, or to put
fake tensors in their place) must see all of them each time.
"""

from collections.abc import Callable
from dataclasses import fields
from typing import Any, TypeVar
from weakref import WeakKeyDictionary

import torch
from torch import Tensor

from glassformer.functional.cells import Extent
from glassformer.functional.graph_capture import is_being_captured, is_unobserved
from glassformer.functional.masks.mask import Mask

_PLAIN = (int, float, str, type(None))
_derived: WeakKeyDictionary[Mask, dict[str, tuple[Any, Any]]] = WeakKeyDictionary()

T = TypeVar("T")


def derive(mask: Mask, name: str, extent: Extent, device: torch.device, make: Callable[[], T]) -> T:
    """What `make` gives, or gave for these sizes when the tensors of the mask were the same.

    Only the last result of each name is kept. It must not refer to the mask.

    >>> from glassformer.functional.masks import Padding
    >>> mask = Padding(torch.tensor([2, 3]))
    >>> where = Extent(2, 1, 1, 3), torch.device("cpu")
    >>> first = derive(mask, "keys", *where, lambda: mask.dense(1, 3, batch=2))
    >>> derive(mask, "keys", *where, lambda: mask.dense(1, 3, batch=2)) is first
    True
    >>> _ = mask.lengths.sub_(1)
    >>> derive(mask, "keys", *where, lambda: mask.dense(1, 3, batch=2)) is first
    False
    """
    versions = _versions(mask)
    if versions is None or not is_unobserved() or is_being_captured():
        return make()
    state = (extent, device, current_stream(device), versions)
    kept = _derived.setdefault(mask, {})
    if name not in kept or kept[name][0] != state:
        with torch.inference_mode(False):  # it may be needed where gradients are
            kept[name] = (state, make())
    return kept[name][1]


def current_stream(device: torch.device) -> int:
    """The stream on which a GPU computes next; 0 elsewhere."""
    return torch.cuda.current_stream(device).cuda_stream if device.type == "cuda" else 0


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
