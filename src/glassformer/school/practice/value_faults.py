"""Values changed on their way: negative, squared, cut, turned, or with another one added."""

import ast
import re
from collections.abc import Iterator, Sequence
from itertools import combinations

from glassformer.school.practice.report import Finding
from glassformer.school.practice.solution_edits import DerivedFault, Edit, SolutionTree

CHANGED_VALUES = "practice.derived.value."  # how the keys of their sentences begin
# What stands around a value: the sentence, and the value in it.
_WRAPS = (
    ("practice.derived.value.negative", "-({})"),
    ("practice.derived.value.absolute", "abs({})"),
    ("practice.derived.value.squared", "({}) ** 2"),
    ("practice.derived.value.doubled", "2 * ({})"),
    ("practice.derived.value.halved", "({}) / 2"),
    ("practice.derived.value.inverse", "1 / ({})"),
    ("practice.derived.value.exponential", "({}).exp()"),
    ("practice.derived.value.logarithm", "({}).log()"),
    ("practice.derived.value.detached", "({}).detach()"),
    ("practice.derived.value.transposed", "({}).swapaxes(-2, -1)"),
    ("practice.derived.value.rectified", "({}).relu()"),
    ("practice.derived.value.softmaxed", "({}).softmax(-1)"),
    ("practice.derived.value.normalized", "(lambda y: y / y.sum(-1)[..., None])({})"),
    ("practice.derived.value.unitlength", "(lambda y: y / y.norm(dim=-1, keepdim=True))({})"),
    ("practice.derived.value.centred", "(lambda y: y - y.mean(-1)[..., None])({})"),
    ("practice.derived.value.rounded", "({}).round()"),
    ("practice.derived.value.single", "({}).float()"),
    ("practice.derived.value.rooted", "({}) ** 0.5"),
    ("practice.derived.value.rowsreversed", "({}).flip(-2)"),
    ("practice.derived.value.columnsreversed", "({}).flip(-1)"),
    ("practice.derived.value.firstreversed", "({}).flip(0)"),
    ("practice.derived.value.rolled", "({}).roll(1, -2)"),
    ("practice.derived.value.rolled", "({}).roll(-1, -2)"),
    ("practice.derived.value.lastrow", "(lambda y: y[..., -1:, :].expand(y.shape))({})"),
    ("practice.derived.value.firstrow", "(lambda y: y[..., :1, :].expand(y.shape))({})"),
)
_COUNTS = (
    ("practice.derived.value.onemore", "({}) + 1"),
    ("practice.derived.value.oneless", "({}) - 1"),
)
# What is left of an argument.
_CUTS = (
    ("practice.derived.value.lastmissing", "({})[..., :-1, :]"),
    ("practice.derived.value.firstmissing", "({})[..., 1:, :]"),
    ("practice.derived.value.lastcolumn", "({})[..., :-1]"),
    ("practice.derived.value.firstcolumn", "({})[..., 1:]"),
)
_TENSORS = {"q", "k", "v", "Q", "K", "V"}


def derive_counts(tree: SolutionTree) -> Iterator[DerivedFault]:
    """An argument that is one more or one less than it should be."""
    yield from _derive_arguments(tree, _COUNTS)


def derive_changed_values(tree: SolutionTree) -> Iterator[DerivedFault]:
    """A value changed where it is computed, or an argument before anything is done with it."""
    for name, value in _find_computed(tree):
        yield from _derive_wraps(tree, name, value)
    yield from _derive_arguments(tree, (*_CUTS, *_WRAPS))


def _find_computed(tree: SolutionTree) -> Iterator[tuple[str, ast.expr]]:
    """What is computed and then assigned or returned, and how it is called in a sentence."""
    for name, value in tree.values():
        if isinstance(value, ast.Constant | ast.Name | ast.Tuple | ast.List | ast.ListComp):
            continue
        function = function_of(tree, value)
        is_result = isinstance(tree.parents.get(value), ast.Return) and function is not None
        yield f"{function.name}(…)" if is_result and function is not None else name, value


def _derive_arguments(
    tree: SolutionTree, forms: Sequence[tuple[str, str]]
) -> Iterator[DerivedFault]:
    """An argument, or several, changed before anything else is done with it."""
    for function in tree.functions:
        if function.name == "__init__":
            continue
        names = argument_names(function)
        groups = [(name,) for name in names]
        groups += [
            group for n in (2, 3) for group in combinations(names, n) if set(group) <= _TENSORS
        ]
        for group in groups:
            loads = [
                node
                for statement in function.body
                for node in ast.walk(statement)
                if isinstance(node, ast.Name)
                and isinstance(node.ctx, ast.Load)
                and node.id in group
            ]
            for key, form in forms:
                edits = [tree.replace(node, f"({form.format(node.id)})") for node in loads]
                look = "|".join(map(whole_word, group))
                yield make_fault(key, *edits, look=look, name=", ".join(group))


def _derive_wraps(tree: SolutionTree, name: str, value: ast.expr) -> Iterator[DerivedFault]:
    for key, form in (*_COUNTS, *_WRAPS):
        edit = tree.replace(value, f"({form.format(tree.text(value))})")
        yield make_fault(key, edit, look=whole_word(name) if name.isidentifier() else "", name=name)


def derive_additions(tree: SolutionTree) -> Iterator[DerivedFault]:
    """An argument or a variable added where none belongs: most often a residual."""
    for name, value in _find_computed(tree):
        function = function_of(tree, value)
        for other in local_names(function) if function is not None else ():
            edit = tree.replace(value, f"(({tree.text(value)}) + {other})")
            yield make_fault("practice.derived.part.added", edit, name=name, part=other)


def function_of(tree: SolutionTree, node: ast.AST) -> ast.FunctionDef | None:
    """The function that a node is in."""
    while node in tree.parents:
        node = tree.parents[node]
        if isinstance(node, ast.FunctionDef):
            return node
    return None


def argument_names(function: ast.FunctionDef) -> list[str]:
    """What a function is given, in order, without self."""
    arguments = [*function.args.args, *function.args.kwonlyargs]
    return [argument.arg for argument in arguments if argument.arg != "self"]


def local_names(function: ast.FunctionDef) -> list[str]:
    """Arguments and variables of a function, in order."""
    names = argument_names(function)
    for node in ast.walk(function):
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            names.append(node.id)
    return list(dict.fromkeys(names))


def make_fault(key: str, *edits: Edit, look: str = "", **values: str) -> DerivedFault:
    return DerivedFault(finding=Finding(key, values), edits=edits, look=look)


def whole_word(text: str) -> str:
    """A pattern that finds a name of code as a whole."""
    return rf"\b{re.escape(text.removeprefix('self.'))}\b"
