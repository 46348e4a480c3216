"""What a repair of a learner's file is made of: nodes replaced, and both texts as shown."""

import ast
import re
from collections.abc import Iterator
from dataclasses import dataclass

from glassformer.school.practice.report import Finding
from glassformer.school.practice.solution_edits import Edit, SolutionTree, apply_edits

_LONGEST = 60  # characters of code in a sentence


@dataclass(frozen=True, slots=True)
class Repair:
    """A changed source, the line that was changed, and the sentence about the change."""

    finding: Finding
    line: int
    source: str


def change_node(tree: SolutionTree, node: ast.expr, text: str) -> Iterator[Repair]:
    """The node replaced; the sentence shows what is around it where it is a name or a number."""
    text = _bracket(tree, node, text)
    start, end = tree.span(node)
    data = tree.source.encode()
    if data[start - 1 : start] == b"(" and data[end : end + 1] == b")":
        text = _strip(text)  # there are brackets already
    changed = apply_edits(tree.source, [tree.replace(node, text)])
    if changed is None:
        return
    shown = find_shown(tree, node)
    first, last = tree.span(shown)
    right = (data[first:start] + text.encode() + data[end:last]).decode()
    wrong = tree.text(shown)
    values = {"wrong": _one_line(wrong), "right": _one_line(_strip(right))}
    if values["wrong"] != values["right"] and "…" not in values["wrong"] + values["right"]:
        yield Repair(Finding("practice.repair.change", values), node.lineno, changed)


def exchange_nodes(
    tree: SolutionTree, node: ast.expr, one: ast.expr, other: ast.expr
) -> Iterator[Repair]:
    """Two parts of a node, each in the place of the other."""
    edits = [tree.replace(one, tree.text(other)), tree.replace(other, tree.text(one))]
    changed = apply_edits(tree.source, edits)
    begin, end = tree.span(node)
    moved = [Edit(each.start - begin, each.end - begin, each.text) for each in edits]
    right = apply_edits(tree.source.encode()[begin:end].decode(), moved)
    if changed is not None and right is not None:
        values = {"wrong": _one_line(tree.text(node)), "right": _one_line(right)}
        if "…" not in values["wrong"]:
            yield Repair(Finding("practice.repair.change", values), node.lineno, changed)


def _bracket(tree: SolutionTree, node: ast.expr, text: str) -> str:
    """With brackets around it, unless it is whole by itself or nothing is beside it."""
    parent = tree.parents.get(node)
    is_alone = isinstance(parent, ast.Assign | ast.Return | ast.AugAssign | ast.keyword) or (
        isinstance(parent, ast.Call) and parent.func is not node
    )
    if isinstance(node, ast.Slice):
        return text
    if is_alone:
        return _strip(text)
    try:
        whole = ast.parse(text, mode="eval").body
    except SyntaxError:
        return text
    needs_none = isinstance(
        whole, ast.Name | ast.Attribute | ast.Subscript | ast.Call | ast.Tuple | ast.Constant
    )
    return text if needs_none or (text.startswith("(") and _strip(text) != text) else f"({text})"


def find_shown(tree: SolutionTree, node: ast.expr) -> ast.expr:
    """The code around a node that a sentence shows with it: as much as is easily read."""
    shown = node
    while len(tree.text(shown)) < _LONGEST // 2:
        parent = tree.parents.get(shown)
        while isinstance(parent, ast.keyword | ast.Slice | ast.comprehension):
            parent = tree.parents.get(parent)
        if not isinstance(parent, ast.expr) or len(tree.text(parent)) > _LONGEST:
            break
        shown = parent
    return shown


def _strip(text: str) -> str:
    """Without brackets around the whole."""
    inner = text[1:-1]
    if not (text.startswith("(") and text.endswith(")")):
        return text
    try:
        ast.parse(inner, mode="eval")
    except SyntaxError:
        return text
    return inner


def _one_line(text: str) -> str:
    line = re.sub(r"\s+", " ", text)
    return line if len(line) <= _LONGEST + 20 else f"{line[: _LONGEST + 19]}…"


def atom(tree: SolutionTree, node: ast.expr) -> str:
    """The text of a node, in brackets where something beside it could tear it apart."""
    text = tree.text(node)
    is_whole = isinstance(node, ast.Name | ast.Constant | ast.Attribute | ast.Subscript | ast.Call)
    return text if is_whole else f"({text})"
