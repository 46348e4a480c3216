"""Repairs of whole statements: left out, moved, kept up in a loop, or under another condition."""

import ast
from collections.abc import Iterator
from itertools import pairwise

from glassformer.school.practice.repair_edits import atom
from glassformer.school.practice.report import Finding
from glassformer.school.practice.solution_edits import Edit, SolutionTree

_LONGEST = 70
_MOST_LINES = 12  # of a block that is moved as a whole
StatementRepair = tuple[Finding, int, tuple[Edit, ...]]


def derive_update_repairs(tree: SolutionTree) -> Iterator[StatementRepair]:
    """Variables that are kept up or overwritten, and conditions that are turned round."""
    for function in tree.functions:
        for _, block in _find_blocks(function):
            for statement in block:
                yield from _derive_updates(tree, statement)
                yield from _derive_conditions(tree, statement)


def derive_statement_repairs(tree: SolutionTree) -> Iterator[StatementRepair]:
    """Statements that are left out or moved."""
    blocks = [block for function in tree.functions for block in _find_blocks(function)]
    for _, block in blocks:
        for statement in block[: None if len(block) > 1 else 0]:
            yield from _derive_removal(tree, statement)
        for one, other in pairwise(block):
            yield from _derive_order(tree, one, other)
    for owner, block in blocks:
        yield from _derive_moves(tree, owner, block)


def _find_blocks(function: ast.FunctionDef) -> Iterator[tuple[ast.AST, list[ast.stmt]]]:
    for node in ast.walk(function):
        if isinstance(node, ast.FunctionDef) and node is not function:
            continue
        for name in ("body", "orelse"):
            block = getattr(node, name, None)
            if isinstance(block, list) and block and isinstance(block[0], ast.stmt):
                yield node, block


def _show(tree: SolutionTree, node: ast.AST) -> str:
    line = tree.text(node).split("\n", 1)[0].split("  #")[0].rstrip()
    return line if len(line) <= _LONGEST else f"{line[: _LONGEST - 1]}…"


def _change(tree: SolutionTree, node: ast.stmt, text: str) -> StatementRepair:
    shown = text if len(text) <= _LONGEST else f"{text[: _LONGEST - 1]}…"
    values = {"wrong": _show(tree, node), "right": shown}
    return Finding("practice.repair.change", values), node.lineno, (tree.replace(node, text),)


def _derive_updates(tree: SolutionTree, statement: ast.stmt) -> Iterator[StatementRepair]:
    """A variable overwritten that must be kept up, and the reverse."""
    match statement:
        case ast.Assign(targets=[ast.Name() | ast.Subscript() as target], value=value):
            name, text = tree.text(target), atom(tree, value)
            if "\n" not in text:
                for symbol in ("|", "+", "&", "*"):
                    yield _change(tree, statement, f"{name} = {name} {symbol} {text}")
        case ast.AugAssign(target=target, value=value):
            name, text = tree.text(target), tree.text(value)
            yield _change(tree, statement, f"{name} = {text}")
            signs = {"+=", "-=", "*=", "/=", "|=", "&="}
            for sign in sorted(signs):
                changed = f"{name} {sign} {text}"
                if changed != tree.text(statement):
                    yield _change(tree, statement, changed)


def _derive_conditions(tree: SolutionTree, statement: ast.stmt) -> Iterator[StatementRepair]:
    match statement:
        case ast.If(test=test) | ast.While(test=test):
            text = tree.text(test)
            values = {"wrong": text[:_LONGEST], "right": f"not ({text})"[:_LONGEST]}
            edit = tree.replace(test, f"not ({text})")
            yield Finding("practice.repair.change", values), statement.lineno, (edit,)
        case _:
            return
    if isinstance(statement, ast.If):
        edit = tree.replace(test, "True")
        values = {"condition": text[:_LONGEST]}
        yield Finding("practice.repair.always", values), statement.lineno, (edit,)


def _derive_removal(tree: SolutionTree, statement: ast.stmt) -> Iterator[StatementRepair]:
    if isinstance(statement, ast.Return | ast.FunctionDef | ast.Import | ast.ImportFrom):
        return
    if isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Constant):
        return
    values = {"step": _show(tree, statement)}
    edit = tree.replace(statement, "pass")
    yield Finding("practice.repair.remove", values), statement.lineno, (edit,)


def _is_short(statement: ast.stmt) -> bool:
    return (statement.end_lineno or statement.lineno) - statement.lineno < _MOST_LINES


def _derive_order(tree: SolutionTree, one: ast.stmt, other: ast.stmt) -> Iterator[StatementRepair]:
    is_code = not any(isinstance(each, ast.Return | ast.FunctionDef) for each in (one, other))
    if is_code and _is_short(one) and _is_short(other):
        edits = (tree.replace(one, tree.text(other)), tree.replace(other, tree.text(one)))
        values = {"one": _show(tree, other), "other": _show(tree, one)}
        yield Finding("practice.repair.order", values), one.lineno, edits


def _derive_moves(
    tree: SolutionTree, owner: ast.AST, block: list[ast.stmt]
) -> Iterator[StatementRepair]:
    """The last statement of a loop put after it, and the one after a loop put at its end."""
    if isinstance(owner, ast.For | ast.While) and len(block) > 1 and block is owner.body:
        last = block[-1]
        if "\n" not in tree.text(last):
            indent = " " * owner.col_offset
            start, _ = tree.span(last)
            _, end = tree.span(owner)
            edits = (Edit(start, tree.span(last)[1], "pass"),)
            edits += (Edit(end, end, f"\n{indent}{tree.text(last)}"),)
            values = {"step": _show(tree, last)}
            yield Finding("practice.repair.afterloop", values), last.lineno, edits
    for one, other in pairwise(block):
        if not isinstance(one, ast.For | ast.While) or one.orelse:
            continue
        if "\n" not in tree.text(other) and not isinstance(other, ast.Return):
            indent = " " * one.body[-1].col_offset
            _, end = tree.span(one)
            moved = Edit(end, end, f"\n{indent}{tree.text(other)}")
            edits = (moved, tree.replace(other, "pass"))
            finding = Finding("practice.repair.inloop", {"step": _show(tree, other)})
            yield finding, other.lineno, edits
