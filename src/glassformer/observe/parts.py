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
            tensors[where] = value
            value = {"tensor": where}
        plain[each.name] = value
    return plain


def put_together(plain: Any, tensors: dict[str, Tensor]) -> Any:
    """What `taken_apart` took apart."""
    if plain is None:
        return None
    values = dict(plain)
    kind = values.pop("kind", None)
    if kind not in KINDS:
        raise TraceError(f"The trace speaks of {kind!r}, which is no kind of mask or bias.")
    for name, value in values.items():
        if isinstance(value, dict) and "tensor" in value:
            values[name] = tensors[value["tensor"]]
        elif isinstance(value, dict):
            values[name] = put_together(value, tensors)
    return KINDS[kind](**values)
