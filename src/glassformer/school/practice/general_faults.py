"""Mistakes of any code: another name, operator, number or function; a call or a step left out."""

import ast
import re
from collections.abc import Iterator
from itertools import pairwise

from glassformer.school.practice.name_faults import cut, derive_names, read_around
from glassformer.school.practice.repair_edits import find_shown
from glassformer.school.practice.solution_edits import (
    DerivedFault,
    Edit,
    SolutionTree,
    call_name,
    receiver,
)
from glassformer.school.practice.value_faults import (
    argument_names,
    derive_additions,
    derive_changed_values,
    derive_counts,
    function_of,
    local_names,
    make_fault,
    whole_word,
)

_LONGEST = 40  # characters of code in a sentence
_LONGEST_DEFINITION = 60
_OPERATORS: dict[type[ast.AST], tuple[str, tuple[str, ...]]] = {
    ast.Add: ("+", ("-", "*")),
    ast.Sub: ("-", ("+",)),
    ast.Mult: ("*", ("/", "+")),
    ast.Div: ("/", ("*", "//", "-")),
    ast.FloorDiv: ("//", ("%",)),
    ast.BitAnd: ("&", ("|",)),
    ast.BitOr: ("|", ("&",)),
    ast.Lt: ("<", ("<=", ">", ">=")),
    ast.LtE: ("<=", ("<", ">", ">=")),
    ast.Gt: (">", (">=", "<", "<=")),
    ast.GtE: (">=", (">", "<=", "<")),
    ast.Eq: ("==", ("!=",)),
    ast.NotEq: ("!=", ("==",)),
}
# Functions that are taken for one another.
_FAMILIES = (
    ("sum", "mean", "amax", "prod", "median"),
    ("mean", "sum", "amax"),
    ("amax", "amin", "mean"),
    ("max", "min"),
    ("min", "max"),
    ("maximum", "minimum"),
    ("argmax", "argmin"),
    ("sin", "cos"),
    ("cos", "sin"),
    ("relu", "tanh", "sigmoid", "abs", "neg", "exp"),
    ("tril", "triu"),
    ("triu", "tril"),
    ("log", "log2", "log10", "exp"),
    ("exp", "exp2", "square", "sigmoid", "abs"),
    ("square", "abs", "sqrt"),
    ("sqrt", "square", "exp"),
    ("repeat_interleave", "repeat"),
    ("log_softmax", "softmax"),
    ("logsumexp", "sum", "amax"),
    ("cumsum", "cumprod"),
)
# Functions whose argument is a count or an offset, where one is easily one off.
_COUNTING = ("tril", "triu", "arange", "range", "full", "topk", "split", "repeat_interleave")


def derive_general_faults(tree: SolutionTree) -> Iterator[DerivedFault]:
    """Every small mistake that the solution leaves room for."""
    yield from derive_names(tree)
    yield from derive_counts(tree)
    yield from derive_additions(tree)
    for node in tree.expressions():
        yield from _derive_residuals(tree, node)
        yield from _derive_calls(tree, node)
    yield from _derive_steps(tree)
    for node in tree.expressions():
        yield from _derive_operators(tree, node)
        yield from _derive_numbers(tree, node)
    yield from derive_changed_values(tree)


def _derive_residuals(tree: SolutionTree, node: ast.expr) -> Iterator[DerivedFault]:
    """An operand left out, or a sum with one of its parts twice."""
    match node:
        case ast.BinOp(left=left, op=ast.Add() | ast.Sub() | ast.Mult() | ast.Div(), right=right):
            pass
        case _:
            return
    one, other = tree.text(left), tree.text(right)
    if len(other) <= _LONGEST:
        edit = tree.replace(node, f"({one})")
        look = whole_word(other) if other.isidentifier() else ""
        part = _define(tree, right)
        yield make_fault("practice.derived.part.missing", edit, part=part, look=look)
    if len(one) <= _LONGEST and not isinstance(node.op, ast.Div):
        sign = "-" if isinstance(node.op, ast.Sub) else ""
        edit = tree.replace(node, f"({sign}({other}))")
        look = whole_word(one) if one.isidentifier() else ""
        part = _define(tree, left)
        yield make_fault("practice.derived.part.missing", edit, part=part, look=look)
    if isinstance(node.op, ast.Add):
        for part in (one, other):
            if len(part) <= _LONGEST:
                edit = tree.replace(node, f"(({one}) + ({other}) + ({part}))")
                yield make_fault("practice.derived.part.twice", edit, part=part)
    if isinstance(node.op, ast.Sub | ast.Div):
        edit = tree.replace(
            node, f"(({other}) {'-' if isinstance(node.op, ast.Sub) else '/'} ({one}))"
        )
        yield make_fault(
            "practice.derived.part.exchanged", edit, one=one[:_LONGEST], other=other[:_LONGEST]
        )


def _define(tree: SolutionTree, node: ast.expr) -> str:
    """The text of a node; of a variable that is computed once, what it is computed by."""
    function = function_of(tree, node)
    if not isinstance(node, ast.Name) or function is None:
        return tree.text(node)
    found = [
        tree.text(each.value)
        for each in ast.walk(function)
        if isinstance(each, ast.Assign)
        and any(isinstance(target, ast.Name) and target.id == node.id for target in each.targets)
    ]
    is_clear = len(found) == 1 and len(found[0]) <= _LONGEST_DEFINITION and "\n" not in found[0]
    return found[0] if is_clear and node.id not in argument_names(function) else node.id


def _derive_calls(tree: SolutionTree, node: ast.expr) -> Iterator[DerivedFault]:
    """A call left out, made twice, or of a related function; a keyword left out."""
    name, inner = call_name(node), receiver(node)
    if not isinstance(node, ast.Call) or not name:
        return
    if inner is not None and name not in ("softmax", "masked_fill", "enumerate", "range"):
        text = tree.text(inner)
        look = whole_word(name)
        is_step = isinstance(tree.parents.get(node), ast.Expr)  # as weight.copy_(…), one of several
        shown = tree.text(node) if is_step and len(tree.text(node)) <= _LONGEST else name
        yield make_fault(
            "practice.derived.call.missing", tree.replace(node, f"({text})"), name=shown
        )
        if not (isinstance(inner, ast.Name) and inner.id == "self"):
            twice = tree.text(node)
            start, end = tree.span(inner)
            first, last = tree.span(node)
            doubled = f"{cut(tree, first, start)}({twice}){cut(tree, end, last)}"
            edit = tree.replace(node, f"({doubled})")
            yield make_fault("practice.derived.call.twice", edit, name=name, look=look)
    for family in _FAMILIES:
        if family[0] == name:
            for other in family[1:]:
                edit = _rename_call(tree, node, other)
                values = {"wrong": other, "right": name}
                yield make_fault(
                    "practice.derived.call.other", edit, look=whole_word(other), **values
                )
    yield from _derive_keywords(tree, node, name)
    if name in _COUNTING:
        yield from _derive_offsets(tree, node, name)


def _derive_offsets(tree: SolutionTree, node: ast.Call, name: str) -> Iterator[DerivedFault]:
    arguments = [*node.args, *(each.value for each in node.keywords)]
    for argument in arguments:
        text = tree.text(argument)
        if not isinstance(argument, ast.Constant | ast.Tuple | ast.Starred):
            for by in ("+ 1", "- 1"):
                values = {"wrong": f"{name}({text} {by})", "right": f"{name}({text})"}
                edit = tree.replace(argument, f"({text} {by})")
                yield make_fault(
                    "practice.derived.call.other", edit, look=whole_word(name), **values
                )
            edit = tree.replace(argument, "0")
            values = {"wrong": f"{name}(0)", "right": f"{name}({text})"}
            yield make_fault("practice.derived.call.other", edit, look=whole_word(name), **values)
    if not arguments:
        _, end = tree.span(node)
        for by in ("1", "-1"):
            values = {"wrong": f"{name}({by})", "right": f"{name}()"}
            edit = Edit(end - 1, end, f"{by})")
            yield make_fault("practice.derived.call.other", edit, look=whole_word(name), **values)


def _rename_call(tree: SolutionTree, node: ast.Call, name: str) -> Edit:
    if isinstance(node.func, ast.Attribute):
        _, end = tree.span(node.func)
        return Edit(end - len(node.func.attr.encode()), end, name)
    return tree.replace(node.func, name)


def _derive_keywords(tree: SolutionTree, node: ast.Call, name: str) -> Iterator[DerivedFault]:
    for keyword in node.keywords:
        match keyword:
            case ast.keyword(arg="dim" | "axis" as arg, value=value):
                right = tree.text(value)
                for wrong in ("0", "1", "-1", "-2"):
                    if wrong != right:
                        edit = tree.replace(value, wrong)
                        values = {
                            "name": name,
                            "wrong": f"{arg}={wrong}",
                            "right": f"{arg}={right}",
                        }
                        yield make_fault(
                            "practice.derived.call.dimension", edit, look=whole_word(name), **values
                        )
                if name in ("sum", "mean", "max", "amax", "softmax"):
                    others = [
                        tree.text(k)
                        for k in node.keywords
                        if k.arg not in (arg, "keepdim", "keepdims")
                    ]
                    method = tree.text(node.func)
                    call = f"{method}({', '.join([*map(tree.text, node.args), *others])})"
                    edit = tree.replace(node, call)
                    yield make_fault(
                        "practice.derived.call.everything", edit, look=whole_word(name), name=name
                    )
            case ast.keyword(arg=str(arg), value=ast.Constant(value=bool(value))):
                edit = tree.replace(keyword.value, str(not value))
                values = {"wrong": f"{arg}={not value}", "right": f"{arg}={value}"}
                yield make_fault("practice.derived.number", edit, look=whole_word(arg), **values)


def _derive_operators(tree: SolutionTree, node: ast.expr) -> Iterator[DerivedFault]:
    match node:
        case ast.BinOp(left=left, op=op, right=right):
            pass
        case ast.Compare(left=left, ops=[op], comparators=[right]):
            pass
        case ast.UnaryOp(op=ast.Invert() | ast.USub() as op, operand=operand):
            edit = tree.replace(node, f"({tree.text(operand)})")
            sign = "~" if isinstance(op, ast.Invert) else "−"
            if not isinstance(operand, ast.Constant):
                yield make_fault(
                    "practice.derived.operator.missing",
                    edit,
                    sign=sign,
                    part=tree.text(operand)[:_LONGEST],
                )
            return
        case _:
            return
    symbol, others = _OPERATORS.get(type(op), ("", ()))
    for other in others:
        edit = tree.replace(node, f"(({tree.text(left)}) {other} ({tree.text(right)}))")
        look = re.escape(other)
        yield make_fault(
            "practice.derived.operator.other", edit, look=look, wrong=other, right=symbol
        )


def _derive_numbers(tree: SolutionTree, node: ast.expr) -> Iterator[DerivedFault]:
    match node:
        case ast.Constant(value=bool()):
            return
        case ast.Constant(value=int() | float() as value):
            pass
        case ast.Slice(lower=None, upper=ast.expr() as upper):
            edits = {f"[:{tree.text(upper)} - 1]": -1, f"[:{tree.text(upper)} + 1]": 1}
            for wrong, by in edits.items():
                edit = tree.replace(upper, f"({tree.text(upper)} + {by})")
                right = f"[:{tree.text(upper)}]"
                yield make_fault("practice.derived.number", edit, wrong=wrong, right=right)
            return
        case _:
            return
    parent = tree.parents.get(node)
    if isinstance(parent, ast.keyword) and parent.arg in ("dim", "axis"):
        return
    others: list[float] = [value + 1, value - 1, -value, 2 * value, value / 2, 0]
    if isinstance(value, int):
        others = [other for other in others if other == int(other)]
        others = [int(other) for other in others]
    if abs(value) >= 100:
        others += [value * 10, value // 10, value // 100, value * 100]
    if isinstance(value, float):
        others += [1.0, -1.0]
    before, after = read_around(tree, node, find_shown(tree, node))
    for other in dict.fromkeys(others):
        if other != value:
            edit = tree.replace(node, f"({other})")
            wrong, right = (f"`{before}{number:g}{after}`" for number in (other, value))
            yield make_fault("practice.derived.number", edit, wrong=wrong, right=right)


def _derive_steps(tree: SolutionTree) -> Iterator[DerivedFault]:
    """A step left out, and two steps in the other order."""
    for function in tree.functions:
        if function.name == "__init__":
            continue
        yield from _derive_early_returns(tree, function)
        for block in _blocks(function):
            for statement in block:
                match statement:
                    case ast.Assign(targets=[ast.Name(id=name)], value=value):
                        known = name in {n.id for n in ast.walk(value) if isinstance(n, ast.Name)}
                    case ast.If(orelse=[]):
                        known, name = True, tree.text(statement.test)
                    case ast.Expr(value=ast.Call() as call):
                        known, name = True, tree.text(call.func)
                    case _:
                        continue
                if known:
                    step = tree.text(statement).split("\n", 1)[0].split("  #")[0][:60]
                    edit = tree.replace(statement, "pass")
                    yield make_fault("practice.derived.step.missing", edit, step=step)
            for one, other in pairwise(block):
                if _is_plain(one) and _is_plain(other):
                    edits = (
                        tree.replace(one, tree.text(other)),
                        tree.replace(other, tree.text(one)),
                    )
                    values = {"one": tree.text(one)[:60], "other": tree.text(other)[:60]}
                    if "\n" not in values["one"] + values["other"]:
                        yield make_fault("practice.derived.step.order", *edits, **values)


def _derive_early_returns(tree: SolutionTree, function: ast.FunctionDef) -> Iterator[DerivedFault]:
    """What went into the last step, returned in its place."""
    for node in ast.walk(function):
        if isinstance(node, ast.Return) and isinstance(node.value, ast.expr):
            names = {each.id for each in ast.walk(node.value) if isinstance(each, ast.Name)}
            for name in sorted(names & set(local_names(function))):
                edit = tree.replace(node.value, name)
                values = {"name": name, "step": tree.text(node.value).split("\n", 1)[0][:60]}
                yield make_fault("practice.derived.step.early", edit, look=r"\breturn\b", **values)


def _blocks(function: ast.FunctionDef) -> Iterator[list[ast.stmt]]:
    for node in ast.walk(function):
        for name in ("body", "orelse"):
            block = getattr(node, name, None)
            if isinstance(block, list):
                yield block


def _is_plain(statement: ast.stmt) -> bool:
    return isinstance(statement, ast.Assign | ast.AugAssign) or (
        isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Call)
    )
