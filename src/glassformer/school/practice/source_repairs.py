"""Small changes of a learner's own code: the one after which every check passes is the mistake.

A derived fault edits the solution until it is as wrong as the learner's code; a repair edits the
learner's code until it is right. It finds mistakes in code that is written in another way.
"""

import ast
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import islice
from typing import Any

from glassformer.school.practice.call_repairs import (
    derive_calls,
    derive_dimensions,
    derive_functions,
    derive_keywords,
    derive_letters,
)
from glassformer.school.practice.operator_repairs import (
    derive_additions,
    derive_comparisons,
    derive_grouping,
    derive_names,
    derive_numbers,
    derive_operators,
    derive_order,
    derive_parts,
    derive_reach,
    derive_slices,
    derive_sums,
    derive_wraps,
)
from glassformer.school.practice.repair_edits import Repair
from glassformer.school.practice.report import Finding
from glassformer.school.practice.solution_edits import (
    SolutionTree,
    apply_edits,
    call_name,
    find_edit,
)
from glassformer.school.practice.statement_repairs import (
    StatementRepair,
    derive_statement_repairs,
    derive_update_repairs,
)
from glassformer.school.practice.value_faults import function_of

MOST_REPAIRS = 4000
# The sentences about a change after which some cases still fail.
PARTLY = {
    "practice.repair.change": "practice.repair.partly.change",
    "practice.repair.everywhere": "practice.repair.partly.everywhere",
    "practice.repair.remove": "practice.repair.partly.remove",
    "practice.repair.order": "practice.repair.partly.order",
    "practice.repair.always": "practice.repair.partly.always",
    "practice.repair.afterloop": "practice.repair.partly.afterloop",
    "practice.repair.inloop": "practice.repair.partly.inloop",
}


def derive_repairs(source: str) -> Iterator[Repair]:
    """Every small change of a source, the likeliest first; in the same order in every process."""
    seen = {source}
    for repair in islice(_derive_all(SolutionTree(source)), MOST_REPAIRS):
        if repair.source not in seen:
            seen.add(repair.source)
            yield repair


def find_repair(source: str, number: int) -> Repair | None:
    """The repair of that number."""
    return next(islice(derive_repairs(source), number, None), None)


def _derive_all(tree: SolutionTree) -> Iterator[Repair]:
    # What is set up in a constructor is wrong less often than what is done with it.
    functions = sorted(tree.functions, key=lambda each: each.name == "__init__")
    nodes = [node for function in functions for node in tree.expressions_of(function)]
    for derive in (derive_comparisons, derive_order, derive_letters):
        for node in nodes:
            yield from derive(tree, node)
    yield from _make_repairs(tree, derive_update_repairs(tree))
    for derive in (
        derive_names,
        derive_numbers,
        derive_functions,
        derive_operators,
        derive_grouping,
        derive_reach,
        derive_parts,
        derive_calls,
        derive_keywords,
        derive_slices,
        derive_dimensions,
        derive_sums,  # late, for a sum may be right by chance
    ):
        for node in nodes:
            yield from derive(tree, node)
    for derive in (derive_keywords, derive_numbers, derive_grouping, derive_functions):
        yield from _derive_everywhere(tree, nodes, derive)
    yield from _derive_everywhere(tree, nodes, derive_dimensions)
    yield from _make_repairs(tree, derive_statement_repairs(tree))
    for derive in (derive_wraps, derive_additions):
        for node in nodes:
            yield from derive(tree, node)


def _make_repairs(tree: SolutionTree, changes: Iterable[StatementRepair]) -> Iterator[Repair]:
    for finding, line, edits in changes:
        changed = apply_edits(tree.source, edits)
        if changed is not None:
            yield Repair(finding, line, changed)


def _derive_everywhere(
    tree: SolutionTree,
    nodes: Sequence[ast.expr],
    derive: Callable[[SolutionTree, ast.expr], Iterator[Repair]],
) -> Iterator[Repair]:
    """The same change in every place of a function that is like the first."""
    groups: dict[tuple[Any, ...], list[list[Repair]]] = {}
    for node in nodes:
        repairs = list(derive(tree, node))
        if repairs:
            key = (function_of(tree, node), *_sign(tree, node), len(repairs))
            groups.setdefault(key, []).append(repairs)
    for group in groups.values():
        for alike in zip(*group, strict=True) if len(group) > 1 else ():
            edits = [find_edit(tree.source, each.source) for each in alike]
            changed = apply_edits(tree.source, edits)
            if changed is not None:
                first = alike[0]
                finding = Finding("practice.repair.everywhere", first.finding.values)
                yield Repair(finding, first.line, changed)


def _sign(tree: SolutionTree, node: ast.expr) -> tuple[Any, ...]:
    """What two places have in common that are changed together."""
    match node:
        case ast.Constant(value=value):
            parent = tree.parents.get(node)
            return ("number", value, parent.arg if isinstance(parent, ast.keyword) else "")
        case ast.Call():
            return ("call", call_name(node))
        case ast.BinOp(op=op, left=left, right=right):
            sides = [
                type(each.op) if isinstance(each, ast.BinOp) else None for each in (left, right)
            ]
            return ("operator", type(op), *sides)
        case ast.Subscript(slice=index):
            return ("index", type(index))
        case _:
            return (type(node), tree.text(node))
