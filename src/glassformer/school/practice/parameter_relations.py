"""Parameters that a model lacks, has too many of, or has in other sizes."""

from glassformer.school.practice.cases import Case
from glassformer.school.practice.outcome import Outcome
from glassformer.school.practice.plain_values import Group, Leaf, Value
from glassformer.school.practice.report import Finding

_MOST_SHOWN = 4


def find_other_parameters(case: Case, expected: Outcome, got: Outcome) -> Finding | None:
    """What is first wrong with the names and sizes of a model's parameters."""
    right, wrong = expected.value, got.value
    if case.name != "parameters" or not isinstance(right, Group) or not isinstance(wrong, Group):
        return None
    if right.kind != "dict" or wrong.kind != "dict":
        return None
    missing = [name for name in right.parts if name not in wrong.parts]
    extra = [name for name in wrong.parts if name not in right.parts]
    if missing and not wrong.parts:
        return Finding("practice.parameters.none")
    if missing and extra:
        values = {"names": _list_names(missing), "others": _list_names(extra)}
        return Finding("practice.parameters.other", values)
    if missing:
        return Finding("practice.parameters.missing", {"names": _list_names(missing)})
    if extra:
        return Finding("practice.parameters.extra", {"others": _list_names(extra)})
    for name, size in right.parts.items():
        one, other = _read_sizes(size), _read_sizes(wrong.parts[name])
        if one is None or other is None or one == other:
            continue
        values = {"name": name, "expected": _format(one), "got": _format(other)}
        if one == other[::-1]:
            return Finding("practice.parameters.turned", values)
        return Finding("practice.parameters.size", values)
    return None


def _read_sizes(value: Value) -> tuple[int, ...] | None:
    """The sizes of one parameter, as the case lists them."""
    if not isinstance(value, Group) or value.kind != "list":
        return None
    sizes = [part.data for part in value.parts.values() if isinstance(part, Leaf)]
    if len(sizes) != len(value.parts) or any(each.size != 1 for each in sizes):
        return None
    numbers = [float(each.reshape(-1)[0]) for each in sizes]
    return tuple(map(int, numbers)) if all(n == int(n) for n in numbers) else None


def _list_names(names: list[str]) -> str:
    shown = ", ".join(f"`{name}`" for name in names[:_MOST_SHOWN])
    return f"{shown} …" if len(names) > _MOST_SHOWN else shown


def _format(sizes: tuple[int, ...]) -> str:
    return f"({', '.join(map(str, sizes))}{',' * (len(sizes) == 1)})"
