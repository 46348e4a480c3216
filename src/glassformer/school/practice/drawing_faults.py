"""The first wrong arrow of a drawing: what is missing, superfluous, reversed or exchanged."""

from collections.abc import Callable, Iterator
from itertools import combinations

from glassformer.school.practice.cases import Case
from glassformer.school.practice.comparison import describe_type
from glassformer.school.practice.drawing import BETWEEN
from glassformer.school.practice.outcome import Outcome
from glassformer.school.practice.plain_values import Group, Leaf, Value
from glassformer.school.practice.report import Finding

Arrow = tuple[str, str]
Arrows = dict[Arrow, None]  # a set that keeps its order: that of the flow


def find_wrong_arrow(case: Case, expected: Outcome, got: Outcome) -> Finding | None:
    """One sentence about a drawing that is not the expected one; None if it was not drawn."""
    name, right, mine = case.names[0], expected.value, got.value
    if mine is None or not isinstance(right, Group):
        return None
    if isinstance(mine, Leaf) and mine.kind == "text":
        return Finding("practice.drawing.empty", {"name": name})
    if isinstance(mine, Leaf) or mine.kind != "dict":
        return Finding("practice.drawing.text", {"name": name, "got": describe_type(mine)})
    for line, kind in mine.parts.items():
        if not _is_arrow(line, kind):
            return Finding("practice.drawing.line", {"name": name, "line": line})
    return next(_compare(name, _read_arrows(right), _read_arrows(mine)), None)


def _is_arrow(line: str, kind: Value) -> bool:
    return isinstance(kind, Leaf) and kind.text == "arrow" and line.count(BETWEEN) == 1


def _read_arrows(drawing: Group) -> Arrows:
    pairs = (line.partition(BETWEEN) for line in drawing.parts)
    return {(start, end): None for start, _, end in pairs}


def _compare(name: str, right: Arrows, mine: Arrows) -> Iterator[Finding]:
    """What is wrong, the most telling first."""
    nodes = dict.fromkeys(node for arrow in right for node in arrow)
    drawn = dict.fromkeys(node for arrow in mine for node in arrow)
    for node in drawn:
        if node not in nodes:
            listed = ", ".join(nodes)
            yield Finding("practice.drawing.node", {"name": name, "node": node, "nodes": listed})
    if mine.keys() == {(end, start) for start, end in right}:
        yield Finding("practice.drawing.backwards", {"name": name})
    for one, other in combinations(nodes, 2):
        if _rename(mine, {one: other, other: one}.get) == right.keys():
            yield Finding("practice.drawing.exchanged", {"one": one, "other": other})
    yield from _compare_arrows(name, right, mine)


def _compare_arrows(name: str, right: Arrows, mine: Arrows) -> Iterator[Finding]:
    drawn = {node for arrow in mine for node in arrow}
    missing = [arrow for arrow in right if arrow not in mine]
    extra = [arrow for arrow in mine if arrow not in right]
    for start, end in missing:
        if (end, start) in extra:
            yield Finding("practice.drawing.reversed", {"name": name, "start": start, "end": end})
    for start, end in missing:
        arrow = {"name": name, "start": start, "end": end}
        for node in (start, end):
            if node not in drawn:
                yield Finding("practice.drawing.absent", {"name": name, "node": node})
        for wrong in (a for a, b in extra if b == end):
            yield Finding("practice.drawing.start", {**arrow, "wrong": wrong})
        for wrong in (b for a, b in extra if a == start):
            yield Finding("practice.drawing.end", {**arrow, "wrong": wrong})
        yield Finding("practice.drawing.missing", arrow)
    for start, end in extra:
        yield Finding("practice.drawing.extra", {"name": name, "start": start, "end": end})


def _rename(arrows: Arrows, new: Callable[[str, str], str]) -> set[Arrow]:
    return {(new(start, start), new(end, end)) for start, end in arrows}
