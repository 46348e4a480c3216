"""Masks and biases as plain values and tensors, and back: for files."""

from dataclasses import fields
from typing import Any

from torch import Tensor

from glassformer.attention import (
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
    Window,
)
from glassformer.attention.biases import BiasSum
from glassformer.attention.masks.mask import And, Not, Or
from glassformer.errors import TraceError

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
        Window,
    )
}


def taken_apart(part: Mask | Bias | None, name: str, tensors: dict[str, Tensor]) -> Any:
    """A mask or a bias as plain values; its tensors are put into `tensors`, under names below."""
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
            value = taken_apart(value, where, tensors)
        elif isinstance(value, Tensor):
            where = next((n for n, t in tensors.items() if _is_same(t, value)), where)
            tensors.setdefault(where, value)
            value = {"tensor": where}
        plain[each.name] = value
    return plain


def _is_same(a: Tensor, b: Tensor) -> bool:
    """Whether two tensors are one in memory: layers share biases, and a file holds them once."""
    looks = [(t.data_ptr(), t.shape, t.stride(), t.dtype) for t in (a, b)]
    return looks[0] == looks[1] and a.numel() > 0


def put_together(plain: Any, tensors: dict[str, Tensor]) -> Any:
    """What `taken_apart` took apart."""
    if plain is None:
        return None
    values = dict(plain)
    kind = values.pop("kind", None)
    if kind not in KINDS:
        raise TraceError(f"The trace speaks of {kind!r}, which is no kind of mask or bias.")
    for name, value in values.items():
        if isinstance(value, dict) and "kind" in value:
            values[name] = put_together(value, tensors)
        elif isinstance(value, dict):
            values[name] = tensors[value["tensor"]]
    return KINDS[kind](**values)
