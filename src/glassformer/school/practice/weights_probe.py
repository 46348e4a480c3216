"""A learner's own attention weights, read off by a question: what comes out if v is the identity?

Attention is linear in the values, out = weights · v, so with v = I the output is the weights. Code
that keeps them to itself shows them all the same.
"""

from dataclasses import replace
from typing import Any

import numpy as np
import torch
from torch import Tensor

from glassformer.school.practice.cases import Case
from glassformer.school.practice.comparison import format_number
from glassformer.school.practice.outcome import Outcome
from glassformer.school.practice.plain_values import Group, Leaf, Value
from glassformer.school.practice.report import Finding

_VALUES = ("v", "V")
_NEAR = 1e-4
# Findings that say what is wrong, and not only where.
TELLING_WEIGHTS = frozenset(
    f"practice.weights.{name}" for name in ("nan", "negative", "masked", "columns", "sum", "scale")
)


def make_probe(case: Case) -> Case | None:
    """The same case with the identity for its values; None if it has none."""
    name = next((each for each in _VALUES if each in case.inputs), None)
    if name is None or case.name == "gradient":
        return None
    identity = _make_identity(case.inputs[name])
    return None if identity is None else replace(case, inputs={**case.inputs, name: identity})


def _make_identity(v: Any) -> Any:
    if isinstance(v, Tensor) and v.dim() > 1 and v.is_floating_point():
        return torch.eye(v.shape[-2], dtype=v.dtype).expand(*v.shape[:-2], -1, -1).clone()
    if isinstance(v, np.ndarray) and v.ndim > 1:
        eye = np.eye(v.shape[-2], dtype=v.dtype)
        return np.broadcast_to(eye, (*v.shape[:-2], *eye.shape)).copy()
    return None


def find_wrong_weight(expected: Outcome, got: Outcome) -> Finding | None:
    """What is first wrong with a learner's weights, and why; None if the probe shows no weights."""
    right, wrong = _read_weights(expected.value), _read_weights(got.value)
    if right is None or wrong is None or right.shape != wrong.shape or not _are_weights(right):
        return None
    bad = ~(np.abs(right - wrong) <= _NEAR)
    if not bad.any():
        return Finding("practice.weights.right")
    place = tuple(int(i) for i in np.argwhere(bad)[0])
    row, cell = _format_place(place[:-1]), _format_place(place)
    mine, total = wrong[place], float(wrong[place[:-1]].sum())
    values = {"cell": cell, "got": format_number(mine), "expected": format_number(right[place])}
    if np.isnan(mine):
        return Finding("practice.weights.nan", {"row": row})
    if mine < -_NEAR:
        return Finding("practice.weights.negative", {"cell": cell, "got": values["got"]})
    if right[place] < 1e-12:
        is_row_empty = not right[place[:-1]].any()  # all keys are masked, or dropout left none
        key = "practice.weights.empty" if is_row_empty else "practice.weights.masked"
        return Finding(key, {"cell": cell, "got": values["got"]})
    if abs(total - 1) > _NEAR:
        if np.allclose(wrong.sum(-2), 1, atol=_NEAR):
            return Finding("practice.weights.columns", {"row": row, "got": format_number(total)})
        return Finding("practice.weights.sum", {"row": row, "got": format_number(total)})
    factor = _find_scale(right, wrong)
    if factor is not None:
        return Finding("practice.weights.scale", {"factor": format_number(factor)})
    return Finding("practice.weights.cell", values)


def _read_weights(value: Value | None) -> np.ndarray | None:
    if isinstance(value, Group):
        value = next(iter(value.parts.values()), None)
    if not isinstance(value, Leaf) or value.kind not in ("tensor", "array") or value.data.ndim < 2:
        return None
    return value.data.astype(np.float64)


def _are_weights(right: np.ndarray) -> bool:
    totals = right.sum(-1)
    sums_up = np.isclose(totals, 1, atol=_NEAR) | np.isclose(totals, 0, atol=_NEAR)
    return bool(sums_up.all() and (right >= -_NEAR).all() and right.size)


def _find_scale(right: np.ndarray, wrong: np.ndarray) -> float | None:
    """The factor of the scores by which one softmax becomes the other: log w = a · log w* + c."""
    seen = right > 1e-9
    if right.shape[-1] < 3 or not seen.all() or (wrong <= 0).any():
        return None
    x, y = np.log(right), np.log(wrong)
    x, y = x - x.mean(-1, keepdims=True), y - y.mean(-1, keepdims=True)
    factor = float((x * y).sum() / (x * x).sum())
    return factor if np.allclose(y, factor * x, atol=1e-3) else None


def _format_place(place: tuple[int, ...]) -> str:
    return ", ".join(map(str, place))
