"""Edits of a solution by its syntax: what a derived fault changes, and where.

A fault that nobody wrote down is an edit of the solution as well: softmax over another dimension,
a call left out, one name in the place of another. It is found by the shape of the code.
"""

import ast
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property

from glassformer.school.practice.report import Finding


@dataclass(frozen=True, slots=True)
class Edit:
    """Bytes of a source, and what is put in their place."""

    start: int
    end: int
    text: str


@dataclass(frozen=True, kw_only=True, slots=True)
class DerivedFault:
    """A mistake worked out from the solution: edits, a sentence, and a pattern for its line.

    What is `common` is also looked for together with another mistake.
    """

    finding: Finding
    edits: tuple[Edit, ...]
    look: str = ""
    common: bool = False


def apply_edits(source: str, edits: Sequence[Edit]) -> str | None:
    """The source with all edits; None if two of them meet.

    >>> apply_edits("a + b", [Edit(4, 5, "c"), Edit(0, 1, "x")])
    'x + c'
    """
    data = source.encode()
    ordered = sorted(edits, key=lambda edit: (edit.start, edit.end))
    before = -1
    for edit in ordered:
        if edit.start < before:
            return None
        before = edit.end
    for edit in reversed(ordered):
        data = data[: edit.start] + edit.text.encode() + data[edit.end :]
    return data.decode()


def find_edit(source: str, changed: str) -> Edit:
    """The one edit that makes the one source of the other.

    >>> find_edit("x = a / b", "x = a * b")
    Edit(start=6, end=7, text='*')
    """
    one, other = source.encode(), changed.encode()
    start = 0
    while start < min(len(one), len(other)) and one[start] == other[start]:
        start += 1
    most = min(len(one), len(other)) - start
    tail = 0
    while tail < most and one[-1 - tail] == other[-1 - tail]:
        tail += 1
    return Edit(start, len(one) - tail, other[start : len(other) - tail].decode(errors="replace"))


@dataclass(frozen=True)
class SolutionTree:
    """A solution as a tree whose nodes know their bytes."""

    source: str
    parents: dict[ast.AST, ast.AST] = field(default_factory=dict, compare=False)

    @cached_property
    def functions(self) -> list[ast.FunctionDef]:
        tree = ast.parse(self.source)
        for parent in ast.walk(tree):
            for child in ast.iter_child_nodes(parent):
                self.parents[child] = parent
        return [node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)]

    @cached_property
    def _line_starts(self) -> list[int]:
        starts = [0]
        for line in self.source.encode().splitlines(keepends=True):
            starts.append(starts[-1] + len(line))
        return starts

    @cached_property
    def _data(self) -> bytes:
        return self.source.encode()

    def span(self, node: ast.AST) -> tuple[int, int]:
        """Where a node begins and ends; for a generator in a call, without its brackets."""
        place: ast.expr = node  # type: ignore[assignment]  # whatever has a place in the source
        assert place.end_lineno is not None and place.end_col_offset is not None
        start = self._line_starts[place.lineno - 1] + place.col_offset
        return start, self._line_starts[place.end_lineno - 1] + place.end_col_offset

    def text(self, node: ast.AST) -> str:
        start, end = self.span(node)
        return self._data[start:end].decode()

    def replace(self, node: ast.AST, text: str) -> Edit:
        return Edit(*self.span(node), text)

    def expressions(self) -> Iterator[ast.expr]:
        """Everything that is computed: no annotations, defaults, docstrings and error texts."""
        for function in self.functions:
            yield from self.expressions_of(function)

    def expressions_of(self, function: ast.FunctionDef) -> Iterator[ast.expr]:
        """The same for one function."""
        for statement in function.body:
            yield from self._walk(statement)

    def _walk(self, node: ast.AST) -> Iterator[ast.expr]:
        if isinstance(node, ast.Raise | ast.FunctionDef | ast.JoinedStr):
            return  # a function within a function has its turn by itself
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant):
            return
        if isinstance(node, ast.expr):
            yield node
        for name, value in ast.iter_fields(node):
            if name in ("annotation", "returns", "decorator_list", "ctx", "op", "ops"):
                continue
            for child in value if isinstance(value, list) else [value]:
                if isinstance(child, ast.AST):
                    yield from self._walk(child)

    def values(self) -> Iterator[tuple[str, ast.expr]]:
        """What is assigned to a name or returned, with that name; parts of a returned tuple."""
        for function in self.functions:
            for node in ast.walk(function):
                match node:
                    case ast.Assign(targets=[ast.Name(id=name)], value=value):
                        yield name, value
                    case ast.Assign(targets=[ast.Tuple(elts=targets)], value=ast.Tuple(elts=parts)):
                        yield from zip(map(self.text, targets), parts, strict=False)
                    case ast.Return(value=ast.Tuple(elts=parts)):
                        yield from ((self.text(part), part) for part in parts)
                    case ast.Return(value=ast.expr() as value):
                        yield self.text(value), value


def call_name(node: ast.AST) -> str:
    """The last name of what is called: softmax for F.softmax(…) and x.softmax(…)."""
    match node:
        case ast.Call(func=ast.Attribute(attr=name)) | ast.Call(func=ast.Name(id=name)):
            return name
        case _:
            return ""


def receiver(node: ast.AST) -> ast.expr | None:
    """What a method is called on: scores for scores.softmax(…), and for F.softmax(scores, …)."""
    match node:
        case ast.Call(func=ast.Attribute(value=ast.Name(id="torch" | "F" | "np" | "math"))):
            return node.args[0] if node.args else None
        case ast.Call(func=ast.Attribute(value=ast.Name(id="self"))):
            return node.args[0] if node.args else None
        case ast.Call(func=ast.Attribute(value=value)):
            return value
        case ast.Call(func=ast.Name()):
            return node.args[0] if node.args else None
        case _:
            return None
