"""How a wrong result is related to the right one: a factor, an order, a row, an input too much.

Relations need the results alone, so they name near misses in any exercise. One is named only if it
holds in every case that failed.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import permutations
from typing import Any

import numpy as np
from torch import Tensor

from glassformer.school.practice.cases import Case, are_same_result
from glassformer.school.practice.comparison import describe_type, format_number, format_shape
from glassformer.school.practice.outcome import Outcome, values_agree
from glassformer.school.practice.plain_values import Group, Leaf, Value
from glassformer.school.practice.report import Finding

_FACTOR = "practice.relation.factor"
_NUMERIC = ("tensor", "array", "number", "bool")
_MOST_AXES = 5
_POWERS = {"": 1.0, "√": 0.5, "1/": -1.0, "1/√": -0.5}
_FUNCTIONS: tuple[tuple[str, Callable[[np.ndarray], np.ndarray]], ...] = (
    ("practice.relation.negated", np.negative),
    ("practice.relation.logarithm", np.log),
    ("practice.relation.exponential", np.exp),
    ("practice.relation.inverse", np.reciprocal),
    ("practice.relation.squared", np.square),
    ("practice.relation.rooted", np.sqrt),
    ("practice.relation.complement", lambda a: 1 - a),
    ("practice.relation.absolute", np.abs),
    ("practice.relation.rounded", np.round),
    ("practice.relation.floored", np.floor),
)


@dataclass(frozen=True, slots=True)
class Pair:
    """A right and a wrong result of the same name, and what went in."""

    path: str
    right: Leaf
    wrong: Leaf
    inputs: Mapping[str, Any]
    tolerance: float

    @property
    def arrays(self) -> tuple[np.ndarray, np.ndarray]:
        return self.right.data.astype(np.float64), self.wrong.data.astype(np.float64)

    def same(self, a: np.ndarray, b: np.ndarray) -> bool:
        """Whether numbers are equal as exactly as the case asks for, and not all NaN."""
        if a.shape != b.shape or not a.size or not np.isfinite(b).any():
            return False
        with np.errstate(invalid="ignore"):
            near = (np.abs(a - b) <= self.tolerance * (1 + np.abs(a))) & np.isfinite(a)
        return bool((near | (a == b) | (np.isnan(a) & np.isnan(b))).all())


def find_relation(
    cases: Sequence[Case], expected: Sequence[Outcome], got: Sequence[Outcome], wrong: Sequence[int]
) -> Finding | None:
    """The relation that holds in all cases that went wrong, if there is one."""
    told: list[Finding] | None = None
    # Gradients have relations of their own, and low precision blurs them.
    apart = ("gradient", "parameters", "float32", "bfloat16")
    sharp = [i for i in wrong if cases[i].name not in apart]
    for i in sharp or wrong:
        right, mine = expected[i].value, got[i].value
        if right is None or mine is None:
            return None
        try:
            here = list(_relate(cases[i], right, mine))
        except (ArithmeticError, ValueError, TypeError):  # results may be of any kind and size
            return None
        if told is None:
            told = here
        else:
            told = [each for each in told if any(_is_same(each, other) for other in here)]
        if not told:
            return None
    if told and len(sharp) < 2:  # a factor may have many names in a single case
        told = [each for each in told if each.key != _FACTOR]
    if not told:
        return None
    alike = [i for i in range(len(got)) if are_same_result(cases[i], cases[wrong[0]])]
    for each in told:
        if not any(_is_refuted(each, cases[i], expected[i].value, got[i].value) for i in alike):
            return each
    return None


def _is_refuted(found: Finding, case: Case, right: Value | None, mine: Value | None) -> bool:
    """Whether a result lacks the factor, be it that it is right or has another one."""
    factors = {
        _show_factor(power, size): number**exponent
        for power, exponent in _POWERS.items()
        for size, number in name_sizes(case.inputs)
    }
    factor = factors.get(str(found.values.get("factor")))
    if found.key != _FACTOR or factor is None:
        return False
    if not isinstance(right, Leaf) or not isinstance(mine, Leaf) or right.shape != mine.shape:
        return False
    if right.kind not in _NUMERIC or mine.kind not in _NUMERIC:
        return False
    a, b = right.data.astype(np.float64), mine.data.astype(np.float64)
    large = np.isfinite(a) & np.isfinite(b) & (np.abs(a) > 1e-3)
    return bool(large.any()) and abs(float(np.median(b[large] / a[large])) / factor - 1) > 0.05


def _show_factor(power: str, size: str) -> str:
    return f"{power}({size})" if power.endswith("√") else f"{power}{size}"


def _is_same(one: Finding, other: Finding) -> bool:
    """Sizes differ from case to case; what they are called does not."""
    return one.key == other.key and all(
        one.values[name] == other.values.get(name)
        for name in one.values
        if name not in ("expected", "got")
    )


def _relate(case: Case, right: Value, wrong: Value) -> Iterator[Finding]:
    """Every relation between two results."""
    name = case.names[0] if len(case.names) == 1 else "result"
    agree = lambda a, b: values_agree(case, a, b)  # noqa: E731
    yield from _relate_containers(name, case.names, right, wrong, agree)
    for path, one, other in _pair_leaves(name, case.names, right, wrong):
        if not agree(one, other):
            pair = Pair(path, one, other, case.inputs, case.tolerance)
            yield from relate_leaves(pair)
            return


def _relate_containers(
    name: str,
    names: tuple[str, ...],
    right: Value,
    wrong: Value,
    agree: Callable[[Value, Value], bool],
) -> Iterator[Finding]:
    listed = ", ".join(names)
    match right, wrong:
        case Leaf(), Group():
            if any(agree(right, part) for part in wrong.parts.values()):
                values = {"name": name, "n": len(wrong.parts)}
                yield Finding("practice.relation.toomany", values)
        case Group(), Leaf():
            for label, part in zip(names, right.parts.values(), strict=False):
                if agree(part, wrong):
                    yield Finding("practice.relation.only", {"name": label, "names": listed})
        case Group(), Group():
            ones, others = list(right.parts.values()), list(wrong.parts.values())
            if (
                right.kind != wrong.kind
                and len(ones) == len(others)
                and all(map(agree, ones, others))
            ):
                values = {"expected": right.kind, "got": wrong.kind}
                yield Finding("practice.relation.container", values)
            elif right.kind == wrong.kind and len(ones) == len(others) > 1:
                orders = list(permutations(range(min(len(ones), _MOST_AXES))))[1:]
                turned = len(ones) <= _MOST_AXES and any(
                    all(agree(one, others[j]) for one, j in zip(ones, order, strict=True))
                    for order in orders
                )
                if turned:
                    yield Finding("practice.relation.order", {"names": listed or name})
            elif len(others) > len(ones) and all(any(agree(a, b) for b in others) for a in ones):
                yield Finding("practice.relation.toomany", {"name": listed, "n": len(others)})


def _pair_leaves(
    name: str, names: tuple[str, ...], right: Value, wrong: Value
) -> Iterator[tuple[str, Leaf, Leaf]]:
    if isinstance(right, Leaf) and isinstance(wrong, Leaf):
        if right.kind in _NUMERIC and wrong.kind in _NUMERIC:
            yield name, right, wrong
    elif isinstance(right, Group) and isinstance(wrong, Group):
        labels = dict(zip(right.parts, names, strict=False)) if len(names) > 1 else {}
        for key in right.parts:
            if key in wrong.parts:
                below = labels.get(key) or f"{name}[{key}]"
                yield from _pair_leaves(below, (), right.parts[key], wrong.parts[key])


def relate_leaves(pair: Pair) -> Iterator[Finding]:
    """Every relation between two arrays, the plainest first."""
    right, wrong = pair.arrays
    same = pair.same(right, wrong)
    values = {"name": pair.path}
    if same and pair.right.kind != pair.wrong.kind:
        types = {"expected": describe_type(pair.right), "got": describe_type(pair.wrong)}
        yield Finding("practice.relation.kind", {**values, **types})
    elif _is_rounded_alike(pair, right, wrong):
        types = {"expected": pair.right.dtype, "got": pair.wrong.dtype}
        yield Finding("practice.relation.dtype", {**values, **types})
    elif right.shape != wrong.shape:
        yield from _relate_shapes(pair, right, wrong)
    else:
        yield from _relate_numbers(pair, right, wrong)


def _is_rounded_alike(pair: Pair, right: np.ndarray, wrong: np.ndarray) -> bool:
    if pair.right.dtype == pair.wrong.dtype or right.shape != wrong.shape or not right.size:
        return False
    with np.errstate(invalid="ignore"):
        near = np.abs(right - wrong) <= 2e-2 * (1 + np.abs(right))
    return bool((near | (right == wrong) | (np.isnan(right) & np.isnan(wrong))).all())


def _relate_shapes(pair: Pair, right: np.ndarray, wrong: np.ndarray) -> Iterator[Finding]:
    sizes = {
        "name": pair.path,
        "expected": format_shape(pair.right),
        "got": format_shape(pair.wrong),
    }
    if right.size == wrong.size and 1 < right.ndim == wrong.ndim <= _MOST_AXES:
        for axes in permutations(range(right.ndim)):
            if axes != tuple(range(right.ndim)) and pair.same(right.transpose(axes), wrong):
                order = ", ".join(map(str, axes))
                yield Finding("practice.relation.permuted", {**sizes, "order": order})
    if right.size == wrong.size and pair.same(right.ravel(), wrong.ravel()):
        yield Finding("practice.relation.reshaped", sizes)
    yield from _relate_reductions(pair, right, wrong, sizes)
    if right.ndim == wrong.ndim:
        for axis in range(right.ndim):
            yield from _relate_lengths(pair, right, wrong, axis)
    if right.size == wrong.size and pair.same(np.sort(right, None), np.sort(wrong, None)):
        yield Finding("practice.relation.scattered", sizes)


def _relate_reductions(
    pair: Pair, right: np.ndarray, wrong: np.ndarray, sizes: dict[str, Any]
) -> Iterator[Finding]:
    for axis in range(right.ndim):
        for key, function in (
            ("practice.relation.summed", np.sum),
            ("practice.relation.averaged", np.mean),
            ("practice.relation.largest", np.max),
        ):
            for keep in (False, True):
                if right.shape[axis] > 1 and pair.same(function(right, axis, keepdims=keep), wrong):
                    yield Finding(key, {**sizes, "axis": str(axis)})
        for index, key in ((0, "practice.relation.onlyfirst"), (-1, "practice.relation.onlylast")):
            if right.shape[axis] > 1:
                one = np.take(right, [index], axis)
                if pair.same(one, wrong) or pair.same(one.squeeze(axis), wrong):
                    yield Finding(key, {**sizes, "axis": str(axis)})


def _relate_lengths(
    pair: Pair, right: np.ndarray, wrong: np.ndarray, axis: int
) -> Iterator[Finding]:
    values = {"name": pair.path, "axis": str(axis)}
    n, m = right.shape[axis], wrong.shape[axis]
    if m < n:
        if pair.same(np.take(right, range(m), axis), wrong):
            yield Finding("practice.relation.endmissing", values)
        if pair.same(np.take(right, range(n - m, n), axis), wrong):
            yield Finding("practice.relation.startmissing", values)
    if m > n:
        if pair.same(right, np.take(wrong, range(n), axis)):
            yield Finding("practice.relation.endextra", values)
        if pair.same(right, np.take(wrong, range(m - n, m), axis)):
            yield Finding("practice.relation.startextra", values)


def _relate_numbers(pair: Pair, right: np.ndarray, wrong: np.ndarray) -> Iterator[Finding]:
    values = {"name": pair.path}
    if pair.right.dtype == "bool" and pair.wrong.dtype == "bool":
        if (right != wrong).all():
            yield Finding("practice.relation.inverted", values)
    else:
        with np.errstate(all="ignore"):
            for key, function in _FUNCTIONS:
                if pair.same(function(right), wrong) and np.ptp(wrong) > pair.tolerance:
                    yield Finding(key, values)
        yield from _relate_factor(pair, right, wrong)
        yield from _relate_inputs(pair, right, wrong)
    if 1 < right.ndim <= _MOST_AXES:
        for axes in permutations(range(right.ndim)):
            if axes != tuple(range(right.ndim)) and pair.same(right.transpose(axes), wrong):
                yield Finding("practice.relation.transposed", values)
    for axis in range(right.ndim):
        yield from _relate_order(pair, right, wrong, axis)
    if right.size > 1 and pair.same(np.sort(right, None), np.sort(wrong, None)):
        yield Finding("practice.relation.places", values)
    yield from _relate_places(pair, right, wrong)


def _relate_factor(pair: Pair, right: np.ndarray, wrong: np.ndarray) -> Iterator[Finding]:
    large = np.abs(right) > 1e-9
    if not large.any() or not np.isfinite(wrong[large]).all():
        return
    factor = float(np.median(wrong[large] / right[large]))
    if not np.isfinite(factor) or factor in (0.0, 1.0) or not pair.same(right * factor, wrong):
        return
    for power, exponent in _POWERS.items():
        for size, number in name_sizes(pair.inputs):
            if number > 1 and abs(number**exponent - factor) <= 1e-6 * abs(factor):
                values = {"name": pair.path, "factor": _show_factor(power, size)}
                yield Finding(_FACTOR, values)
    if abs(factor * np.log(2) - 1) < 1e-6:
        yield Finding("practice.relation.bits", {"name": pair.path})
    shown = format_number(factor)
    yield Finding("practice.relation.constant", {"name": pair.path, "factor": shown})


def name_sizes(inputs: Mapping[str, Any]) -> Iterator[tuple[str, float]]:
    """Every size that code can read from its inputs, by the words that read it."""
    for name, value in inputs.items():
        if isinstance(value, Tensor | np.ndarray):
            for axis, size in enumerate(value.shape):
                back = axis - len(value.shape)
                yield f"{name}.shape[{back if back >= -2 else axis}]", float(size)
        elif isinstance(value, int | float) and not isinstance(value, bool):
            yield name, float(value)


def _relate_inputs(pair: Pair, right: np.ndarray, wrong: np.ndarray) -> Iterator[Finding]:
    """An input that was added, or that came out unchanged."""
    off = wrong - right
    for name, value in pair.inputs.items():
        given = value.detach().double().numpy() if isinstance(value, Tensor) else value
        if not isinstance(given, np.ndarray) or given.shape != right.shape:
            continue
        values = {"name": pair.path, "part": name}
        if pair.same(given, wrong):
            yield Finding("practice.relation.unchanged", values)
        if pair.same(given, off):
            yield Finding("practice.relation.added", values)
        if pair.same(-given, off):
            yield Finding("practice.relation.subtracted", values)
        if pair.same(right * given, wrong):
            yield Finding("practice.relation.multiplied", values)
    constant = float(off.flat[0]) if off.size else 0.0
    if right.size > 1 and constant and pair.same(right + constant, wrong):
        values = {"name": pair.path, "number": format_number(constant)}
        yield Finding("practice.relation.offset", values)


def _relate_order(pair: Pair, right: np.ndarray, wrong: np.ndarray, axis: int) -> Iterator[Finding]:
    n = right.shape[axis]
    values = {"name": pair.path, "axis": str(axis)}
    if n < 2:
        return
    if pair.same(np.flip(right, axis), wrong):
        yield Finding("practice.relation.reversed", values)
    for by in (1, -1):
        if pair.same(np.roll(right, by, axis), wrong):
            yield Finding("practice.relation.rolled", values)
        one, other = (range(n - 1), range(1, n)) if by > 0 else (range(1, n), range(n - 1))
        shifted = pair.same(np.take(right, one, axis), np.take(wrong, other, axis))
        if shifted and n > 2:
            yield Finding("practice.relation.shifted", values)
    if n <= 12:
        ones = [np.take(right, i, axis) for i in range(n)]
        found = []
        for j in range(n):
            mine = np.take(wrong, j, axis)
            found.append(next((i for i in range(n) if pair.same(ones[i], mine)), -1))
        if sorted(found) == list(range(n)):
            yield Finding("practice.relation.mixed", values)
        elif -1 not in found and len(set(found)) == 1:
            yield Finding("practice.relation.repeated", values)


def _relate_places(pair: Pair, right: np.ndarray, wrong: np.ndarray) -> Iterator[Finding]:
    """Right in everything but one diagonal, or the rows that should be 0."""
    with np.errstate(invalid="ignore"):
        bad = ~(np.abs(right - wrong) <= pair.tolerance * (1 + np.abs(right)))
        bad &= ~((right == wrong) | (np.isnan(right) & np.isnan(wrong)))
    values = {"name": pair.path}
    if right.ndim > 1 and bad.any():
        rows = bad.any(axis=-1)
        empty = (right == 0).all(axis=-1)
        if empty.any() and not empty.all() and not (rows & ~empty).any():
            yield Finding("practice.relation.emptyrows", values)
    if right.ndim > 1 and min(right.shape[-2:]) > 1 and bad.any():
        where = np.argwhere(bad)
        steps = np.unique(where[:, -1] - where[:, -2])
        if len(steps) == 1 and len(where) > 1:
            yield Finding("practice.relation.diagonal", {**values, "by": str(int(steps[0]))})
