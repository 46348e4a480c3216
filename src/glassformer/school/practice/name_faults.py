"""One name in the place of another: an argument, a variable, a layer or a parameter."""

import ast
from collections.abc import Iterator
from itertools import combinations

from glassformer.school.practice.repair_edits import find_shown
from glassformer.school.practice.solution_edits import DerivedFault, SolutionTree
from glassformer.school.practice.value_faults import (
    argument_names,
    local_names,
    make_fault,
    whole_word,
)


def derive_wrong_layers(tree: SolutionTree) -> Iterator[DerivedFault]:
    """One layer or parameter in the place of another, and two of them exchanged."""
    layers = _read_attributes(tree)
    for node in _find_attributes(tree):
        for other in layers:
            if other != node.attr:
                values = {"wrong": f"self.{other}", "right": f"self.{node.attr}"}
                edit = tree.replace(node, f"self.{other}")
                yield make_fault(
                    "practice.derived.name.wrong", edit, look=whole_word(other), **values
                )
    for one, other in combinations(layers, 2):
        swapped = [
            tree.replace(node, f"self.{other if node.attr == one else one}")
            for node in _find_attributes(tree)
            if node.attr in (one, other)
        ]
        look = f"{whole_word(one)}|{whole_word(other)}"
        values = {"one": one, "other": other}
        yield make_fault("practice.derived.name.exchanged", *swapped, look=look, **values)


def derive_names(tree: SolutionTree) -> Iterator[DerivedFault]:
    """One argument or variable in the place of another."""
    for function in tree.functions:
        names, arguments = local_names(function), set(argument_names(function))
        for node in ast.walk(function):
            if not isinstance(node, ast.Name) or not isinstance(node.ctx, ast.Load):
                continue
            for other in names if node.id in names else ():
                if other != node.id:
                    edit = tree.replace(node, other)
                    before, after = _read_use(tree, node, known={node.id, other} <= arguments)
                    values = {
                        "wrong": f"{before}{other}{after}",
                        "right": f"{before}{node.id}{after}",
                    }
                    yield make_fault(
                        "practice.derived.name.wrong", edit, look=whole_word(other), **values
                    )


def _read_use(tree: SolutionTree, node: ast.Name, *, known: bool) -> tuple[str, str]:
    """The code before and after a name, as far as a sentence shows it.

    A learner knows arguments; of them, no more than the size is shown that is read: `.shape[-1]`.
    Variables of the solution say nothing without the code around them.
    """
    whole: ast.expr = node
    if not known:
        whole = find_shown(tree, node)
    else:
        parent = tree.parents.get(node)
        if isinstance(parent, ast.Attribute) and parent.attr == "shape":
            index = tree.parents.get(parent)
            whole = index if isinstance(index, ast.Subscript) else parent
    return read_around(tree, node, whole)


def read_around(tree: SolutionTree, node: ast.expr, whole: ast.expr) -> tuple[str, str]:
    """The code of a node before and after a part of it."""
    (start, end), (first, last) = tree.span(node), tree.span(whole)
    return cut(tree, first, start), cut(tree, end, last)


def _find_attributes(tree: SolutionTree) -> list[ast.Attribute]:
    """Where layers and parameters are used, outside of the constructor."""
    return [
        node
        for function in tree.functions
        if function.name != "__init__"
        for node in ast.walk(function)
        if isinstance(node, ast.Attribute)
        and isinstance(node.value, ast.Name)
        and node.value.id == "self"
        and isinstance(node.ctx, ast.Load)
    ]


def _read_attributes(tree: SolutionTree) -> list[str]:
    methods = {function.name for function in tree.functions}
    return sorted({node.attr for node in _find_attributes(tree)} - methods)


def cut(tree: SolutionTree, start: int, end: int) -> str:
    """The code between two places."""
    return tree.source.encode()[start:end].decode()
