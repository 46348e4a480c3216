"""Masks and biases encoded as plain values and tensors, and decoded again: for files."""

from dataclasses import fields
from typing import Any

import torch
from torch import Tensor

from glassformer.errors import TraceError
from glassformer.functional import (
    ALiBi,
    Bias,
    Causal,
    Documents,
    Explicit,
    ExplicitBias,
    Mask,
    Padding,
    Prefix,
    RelativeBuckets,
    Sequences,
    Window,
)
from glassformer.functional.biases import BiasSum
from glassformer.functional.masks.mask import And, Not, Or
from glassformer.settings import quote

KINDS: dict[str, type] = {
    kind.__name__: kind
    for kind in (
        ALiBi,
        And,
        BiasSum,
        Causal,
        Documents,
        Explicit,
        ExplicitBias,
        Not,
        Or,
        Padding,
        Prefix,
        RelativeBuckets,
        Sequences,
        Window,
    )
}


def encode_mask(part: Mask | Bias | None, name: str, tensors: dict[str, Tensor]) -> Any:
    """A mask or a bias as plain values; its tensors go into `tensors`, under `name`."""
    if part is None:
        return None
    kind = type(part).__name__
    if kind not in KINDS:
        raise TraceError(
            f"Masks and biases in a trace must be of {', '.join(KINDS)}; got {kind}. "
            "Use an Explicit mask, or an ExplicitBias, to save it."
        )
    plain: dict[str, Any] = {"kind": kind}
    for each in fields(part):
        value = getattr(part, each.name)
        where = f"{name}.{each.name}"
        if isinstance(value, Mask | Bias):
            value = encode_mask(value, where, tensors)
        elif isinstance(value, Tensor):
            where = next((n for n, t in tensors.items() if _is_same(t, value)), where)
            tensors.setdefault(where, value)
            value = {"tensor": where}
        plain[each.name] = value
    return plain


def _is_same(a: Tensor, b: Tensor) -> bool:
    """Whether two tensors are one in memory: layers share biases, and a file stores them once."""
    looks = [(t.data_ptr(), t.shape, t.stride(), t.dtype) for t in (a, b)]
    return looks[0] == looks[1] and a.numel() > 0


def decode_mask(plain: Any, tensors: dict[str, Tensor]) -> Any:
    """The inverse of `encode_mask`; an error names the field that does not fit."""
    if plain is None:
        return None
    values = dict(plain) if isinstance(plain, dict) else {}
    kind = values.pop("kind", None)
    if not isinstance(kind, str) or kind not in KINDS:
        raise TraceError(f"{quote(kind)} is no kind of mask or bias")
    known = {each.name for each in fields(KINDS[kind])}
    for name, value in values.items():
        if name not in known:
            raise TraceError(f"{kind} has no field {quote(name)}")
        if isinstance(value, dict) and "kind" in value:
            values[name] = decode_mask(value, tensors)
        elif isinstance(value, dict):
            where = value.get("tensor")
            if not isinstance(where, str) or where not in tensors:
                raise TraceError(f"{kind}.{name} names the tensor {quote(where)}, which is missing")
            values[name] = tensors[where]
        if not _fits(name, values[name], Mask if issubclass(KINDS[kind], Mask) else Bias):
            raise TraceError(f"{kind}.{name} cannot be {quote(value)}")
    return KINDS[kind](**values)


def _fits(name: str, value: Any, parent: type) -> bool:
    is_number = type(value) is int and abs(value) < 2**31
    is_tensor = isinstance(value, Tensor)
    is_whole = is_tensor and not value.is_floating_point() and value.dtype != torch.bool
    if name in ("a", "b"):
        return isinstance(value, parent)
    if name in ("left", "right", "max_distance"):
        return is_number or (value is None and name != "max_distance")
    if name in ("offset", "length", "lengths", "ids", "query_ids"):
        is_list = isinstance(value, list) and all(type(n) is int for n in value)
        return is_number or is_whole or is_list or (value is None and name != "length")
    if name == "bidirectional":
        return isinstance(value, bool)
    if name in ("slopes", "table"):
        return is_tensor and value.is_floating_point()
    if name == "tensor":
        return is_tensor and not is_whole and (value.dtype == torch.bool) == (parent is Mask)
    return isinstance(value, str)
