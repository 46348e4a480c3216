"""A tree of numbers as plain values: every node is what the nodes below it add up to."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from glassformer.render.chart import Number


@dataclass(frozen=True, kw_only=True, slots=True)
class Node:
    """A number, what it is called, and what it is made of."""

    name: str
    value: Number | None
    note: str = ""  # how the number comes about, or why nothing is below it
    unit: str = ""  # numbers of different units are not compared
    is_rest: bool = False  # a remainder rather than a part
    is_sum: bool = True  # of the nodes below it
    children: tuple["Node", ...] = ()

    def walk(self, level: int = 0) -> Iterator[tuple[int, "Node"]]:
        """This node and all below it, each with its level."""
        yield level, self
        for child in self.children:
            yield from child.walk(level + 1)

    def as_dict(self) -> dict[str, Any]:
        """Return plain values, for JSON."""
        plain = {name: getattr(self, name) for name in ("name", "value", "note", "unit")}
        flags = {"is_rest": self.is_rest, "is_sum": self.is_sum}
        return {**plain, **flags, "children": [child.as_dict() for child in self.children]}


@dataclass(frozen=True, kw_only=True, slots=True)
class Tree:
    """A root, and the words around it."""

    root: Node
    title: str
    caption: str = ""
    verdict: str = ""

    def as_dict(self) -> dict[str, Any]:
        """Return plain values, for JSON."""
        words = {"title": self.title, "caption": self.caption, "verdict": self.verdict}
        return {**words, "root": self.root.as_dict()}


def largest_by_unit(root: Node) -> dict[str, float]:
    """The largest size of a number in each unit: what the widest edge stands for."""
    found: dict[str, float] = {}
    for _, node in root.walk():
        found[node.unit] = max(found.get(node.unit, 0.0), abs(float(node.value or 0.0)))
    return found
