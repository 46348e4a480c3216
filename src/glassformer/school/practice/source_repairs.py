"""Small changes of a learner's own code: the one after which every check passes is the mistake.

A derived fault edits the solution until it is as wrong as the learner's code; a repair edits the
learner's code until it is right. It finds mistakes in code that is written in another way.
"""

import ast
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Any

from glassformer.school.practice.report import Finding
from glassformer.school.practice.solution_edits import (
    Edit,
    SolutionTree,
    apply_edits,
    call_name,
    find_edit,
    receiver,
)
from glassformer.school.practice.statement_repairs import (
    StatementRepair,
    derive_statement_repairs,
    derive_update_repairs,
)
from glassformer.school.practice.value_faults import local_names

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
_LONGEST = 60  # characters of code in a sentence
_OPERATORS: dict[type[ast.AST], tuple[str, ...]] = {
    ast.Add: ("-", "*"),
    ast.Sub: ("+", "*", "/"),
    ast.Mult: ("/", "+", "@", "-"),
    ast.Div: ("*", "-", "//"),
    ast.FloorDiv: ("%", "/"),
    ast.Mod: ("//",),
    ast.MatMult: ("*",),
    ast.BitAnd: ("|",),
    ast.BitOr: ("&",),
    ast.Lt: ("<=", ">=", ">"),
    ast.LtE: ("<", ">", ">="),
    ast.Gt: (">=", "<=", "<"),
    ast.GtE: (">", "<", "<="),
    ast.Eq: ("!=",),
    ast.NotEq: ("==",),
    ast.Is: ("is not",),
    ast.IsNot: ("is",),
}
_SYMBOLS: dict[type[ast.AST], str] = {
    ast.Add: "+",
    ast.Sub: "-",
    ast.Mult: "*",
    ast.Div: "/",
    ast.FloorDiv: "//",
    ast.MatMult: "@",
    ast.Pow: "**",
    ast.Mod: "%",
}
# Functions that are mistaken for one another, whichever of them is right.
_FAMILIES = (
    ("sum", "mean", "amax", "max", "amin", "prod", "std", "var", "norm", "logsumexp"),
    ("max", "min", "sum"),
    ("maximum", "minimum", "max", "min"),
    ("argmax", "argmin"),
    ("sin", "cos", "tan"),
    ("relu", "gelu", "silu", "tanh", "sigmoid"),
    ("tril", "triu"),
    ("log", "log2", "log10", "log1p", "exp"),
    ("exp", "exp2", "expm1", "log", "log1p"),
    ("square", "abs", "sqrt"),
    ("sqrt", "square", "rsqrt", "isqrt", "exp"),
    ("repeat_interleave", "repeat"),
    ("tile", "repeat_interleave"),
    ("softmax", "log_softmax"),
    ("logsigmoid", "sigmoid"),
    ("sigmoid", "logsigmoid"),
    ("cumsum", "cumprod"),
    ("floor", "ceil", "round"),
    ("rand", "randn"),
    ("ones", "zeros"),
    ("any", "all"),
    ("append", "extend"),
    ("scatter", "scatter_add"),
    ("argsort", "sort"),
    ("add", "sub"),
    ("mul", "div"),
)
_OTHERS = {
    name: tuple(dict.fromkeys(each for f in _FAMILIES if name in f for each in f if each != name))
    for family in _FAMILIES
    for name in family
}
# What a value may lack around it.
_WRAPS = (
    "-{}",
    "~{}",
    "(1 - {})",
    "{}.transpose(-2, -1)",
    "{} ** 0.5",
    "{} ** 2",
    "(1 / {})",
    "{}.exp()",
    "{}.log()",
    "abs({})",
    "2 * {}",
    "({} / 2)",
    "({} + 1)",
    "({} - 1)",
    "{}.softmax(-1)",
    "{}.flip(-1)",
    "{}.detach()",
    "{}.relu()",
    "{}[..., None]",
    "{}[:, None]",
    "{}.T",
)
_REDUCTIONS = ("sum", "mean", "amax", "max", "min", "amin", "norm", "var", "std", "logsumexp")
_ALONG = ("split", "cumsum", "concatenate", "cat", "stack", "flip", "argmax", "argmin", "sort")
_MODULES = {"torch", "F", "np", "nn", "math", "self"}
_SMALL = (
    ast.Name,
    ast.Attribute,
    ast.Subscript,
    ast.Call,
    ast.BinOp,
    ast.UnaryOp,
    ast.Compare,
)


@dataclass(frozen=True, slots=True)
class Repair:
    """A changed source, the line that was changed, and the sentence about the change."""

    finding: Finding
    line: int
    source: str


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
    for derive in (_derive_comparisons, _derive_order, _derive_letters):
        for node in nodes:
            yield from derive(tree, node)
    yield from _make_repairs(tree, derive_update_repairs(tree))
    for derive in (
        _derive_names,
        _derive_numbers,
        _derive_functions,
        _derive_operators,
        _derive_grouping,
        _derive_sums,
        _derive_parts,
        _derive_calls,
        _derive_keywords,
        _derive_slices,
        _derive_dimensions,
    ):
        for node in nodes:
            yield from derive(tree, node)
    for derive in (_derive_keywords, _derive_numbers, _derive_grouping, _derive_functions):
        yield from _derive_everywhere(tree, nodes, derive)
    yield from _derive_everywhere(tree, nodes, _derive_dimensions)
    yield from _make_repairs(tree, derive_statement_repairs(tree))
    for derive in (_derive_wraps, _derive_additions):
        for node in nodes:
            yield from derive(tree, node)


def _make_repairs(tree: SolutionTree, changes: Iterable[StatementRepair]) -> Iterator[Repair]:
    for finding, line, edits in changes:
        changed = apply_edits(tree.source, edits)
        if changed is not None:
            yield Repair(finding, line, changed)


def _change(tree: SolutionTree, node: ast.expr, text: str) -> Iterator[Repair]:
    """The node replaced; the sentence shows what is around it where it is a name or a number."""
    text = _bracket(tree, node, text)
    changed = apply_edits(tree.source, [tree.replace(node, text)])
    if changed is None:
        return
    shown = _find_shown(tree, node)
    start, end = tree.span(node)
    first, last = tree.span(shown)
    data = tree.source.encode()
    right = (data[first:start] + text.encode() + data[end:last]).decode()
    wrong = tree.text(shown)
    values = {"wrong": _one_line(wrong), "right": _one_line(_strip(right))}
    if values["wrong"] != values["right"] and "…" not in values["wrong"] + values["right"]:
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


def _find_shown(tree: SolutionTree, node: ast.expr) -> ast.expr:
    shown = node
    while len(tree.text(shown)) < _LONGEST // 2:
        parent = tree.parents.get(shown)
        while isinstance(parent, ast.keyword | ast.Slice):
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


def _derive_comparisons(tree: SolutionTree, node: ast.expr) -> Iterator[Repair]:
    match node:
        case ast.Compare(left=left, ops=[op], comparators=[right]):
            for other in _OPERATORS.get(type(op), ()):
                yield from _change(tree, node, f"({tree.text(left)} {other} {tree.text(right)})")


def _derive_order(tree: SolutionTree, node: ast.expr) -> Iterator[Repair]:
    """Operands, arguments or nested calls in the other order."""
    match node:
        case ast.BinOp(left=left, op=op, right=right) if type(op) in _SYMBOLS:
            if not isinstance(op, ast.Add | ast.Mult):
                one, other = _atom(tree, left), _atom(tree, right)
                yield from _change(tree, node, f"({other} {_SYMBOLS[type(op)]} {one})")
        case ast.Call(func=outer, args=[ast.Call(func=inner, args=[x], keywords=[])], keywords=[]):
            yield from _change(
                tree, node, f"{tree.text(inner)}({tree.text(outer)}({tree.text(x)}))"
            )
    match node:
        case ast.Call(args=[one, other, *_]):
            yield from _exchange(tree, node, one, other)
        case ast.Tuple(elts=[one, other], ctx=ast.Load()):
            yield from _exchange(tree, node, one, other)
        case ast.IfExp(body=one, orelse=other):
            yield from _exchange(tree, node, one, other)
    match node:
        case ast.Call(args=[first, one, other, *_]):
            yield from _exchange(tree, node, one, other)
            yield from _exchange(tree, node, first, other)
    match node:
        case ast.Call(func=function, args=[first, *others], keywords=[]) if len(others) > 1:
            moved = ", ".join(tree.text(each) for each in (*others, first))
            yield from _change(tree, node, f"{tree.text(function)}({moved})")


def _exchange(
    tree: SolutionTree, node: ast.expr, one: ast.expr, other: ast.expr
) -> Iterator[Repair]:
    edits = [tree.replace(one, tree.text(other)), tree.replace(other, tree.text(one))]
    changed = apply_edits(tree.source, edits)
    begin, end = tree.span(node)
    moved = [Edit(each.start - begin, each.end - begin, each.text) for each in edits]
    right = apply_edits(tree.source.encode()[begin:end].decode(), moved)
    if changed is not None and right is not None:
        values = {"wrong": _one_line(tree.text(node)), "right": _one_line(right)}
        if "…" not in values["wrong"]:
            yield Repair(Finding("practice.repair.change", values), node.lineno, changed)


def _atom(tree: SolutionTree, node: ast.expr) -> str:
    text = tree.text(node)
    is_whole = isinstance(node, ast.Name | ast.Constant | ast.Attribute | ast.Subscript | ast.Call)
    return text if is_whole else f"({text})"


def _derive_numbers(tree: SolutionTree, node: ast.expr) -> Iterator[Repair]:
    match node:
        case ast.Constant(value=bool(value)):
            yield from _change(tree, node, str(not value))
        case ast.UnaryOp(op=ast.USub(), operand=ast.Constant(value=int(value))):
            for other in (-value - 1, -value + 1, 0, 1, 2, value):
                yield from _change(tree, node, str(other))
        case ast.Constant(value=int(value)):
            for other in dict.fromkeys((value + 1, value - 1, -1, -2, 0, 1, 2, -value, -3)):
                if other != value:
                    text = str(other)
                    in_sum = isinstance(tree.parents.get(node), ast.BinOp | ast.UnaryOp)
                    yield from _change(tree, node, f"({text})" if in_sum and other < 0 else text)
        case ast.Constant(value=float(value)):
            function = _function_of(tree, node)
            for name in local_names(function) if function is not None else ():
                yield from _change(tree, node, name)
            for other in dict.fromkeys((-value, 2 * value, value / 2, 0.0, 1.0, 0.5, 10 * value)):
                if other != value:
                    yield from _change(tree, node, f"({other!r})" if other < 0 else repr(other))


def _derive_names(tree: SolutionTree, node: ast.expr) -> Iterator[Repair]:
    match node:
        case ast.Name(id=name, ctx=ast.Load()):
            function = _function_of(tree, node)
            names = local_names(function) if function is not None else []
            for other in names if name in names else ():
                if other != name:
                    yield from _change(tree, node, other)
        case ast.Attribute(value=ast.Name(id="self"), attr=name, ctx=ast.Load()):
            others = {
                each.attr
                for function in tree.functions
                for each in ast.walk(function)
                if isinstance(each, ast.Attribute)
                and isinstance(each.value, ast.Name)
                and each.value.id == "self"
                and isinstance(each.ctx, ast.Store)
            }
            for other in sorted(others - {name}):
                yield from _change(tree, node, f"self.{other}")


def _function_of(tree: SolutionTree, node: ast.AST) -> ast.FunctionDef | None:
    while node in tree.parents:
        node = tree.parents[node]
        if isinstance(node, ast.FunctionDef):
            return node
    return None


def _derive_functions(tree: SolutionTree, node: ast.expr) -> Iterator[Repair]:
    """A related function in the place of one."""
    if not isinstance(node, ast.Call):
        return
    name = call_name(node)
    for other in _OTHERS.get(name, ()):
        start, end = tree.span(node.func)
        function = tree.source.encode()[start:end].decode()[: -len(name)] + other
        if (other, isinstance(node.func, ast.Name)) != ("norm", True):
            _, last = tree.span(node)
            rest = tree.source.encode()[end:last].decode()
            yield from _change(tree, node, f"{function}{rest}")


def _derive_operators(tree: SolutionTree, node: ast.expr) -> Iterator[Repair]:
    match node:
        case ast.BinOp(left=left, op=op, right=right):
            one, other = _atom(tree, left), _atom(tree, right)
            for symbol in _OPERATORS.get(type(op), ()):
                yield from _change(tree, node, f"({one} {symbol} {other})")
            if isinstance(op, ast.FloorDiv):
                yield from _change(tree, node, f"-(-{one} // {other})")
        case ast.BoolOp(op=op, values=[one, *others]):
            word = "or" if isinstance(op, ast.And) else "and"
            text = f" {word} ".join(_atom(tree, each) for each in (one, *others))
            yield from _change(tree, node, f"({text})")
        case ast.UnaryOp(operand=operand) if not isinstance(operand, ast.Constant):
            yield from _change(tree, node, _atom(tree, operand))


def _derive_letters(tree: SolutionTree, node: ast.expr) -> Iterator[Repair]:
    """One letter of an einsum for another."""
    if call_name(node) != "einsum" or not isinstance(node, ast.Call) or not node.args:
        return
    formula = node.args[0]
    if not (isinstance(formula, ast.Constant) and isinstance(formula.value, str)):
        return
    text = formula.value
    letters = sorted({c for c in text if c.isalpha()})
    for i, c in enumerate(text):
        for other in letters if c.isalpha() else ():
            if other != c:
                quote = tree.text(formula)[-1]
                yield from _change(tree, formula, f"{quote}{text[:i]}{other}{text[i + 1 :]}{quote}")


def _derive_calls(tree: SolutionTree, node: ast.expr) -> Iterator[Repair]:
    """A call left out, or an argument of it."""
    if not isinstance(node, ast.Call):
        return
    inner = receiver(node)
    if inner is not None and not (isinstance(inner, ast.Name) and inner.id == "self"):
        yield from _change(tree, node, _atom(tree, inner))
    if len(node.args) == 1 and not node.keywords:
        yield from _change(tree, node, _atom(tree, node.args[0]))
    for part in node.keywords:
        others = [tree.text(each) for each in (*node.args, *node.keywords) if each is not part]
        yield from _change(tree, node, f"{tree.text(node.func)}({', '.join(others)})")


def _derive_keywords(tree: SolutionTree, node: ast.expr) -> Iterator[Repair]:
    """An argument that is missing: a dimension, the dimension that is kept, the mode of dropout."""
    if not isinstance(node, ast.Call):
        return
    name, given = call_name(node), {each.arg for each in node.keywords}
    text = tree.text(node)
    if not text.endswith(")") or name not in (*_REDUCTIONS, *_ALONG, "dropout"):
        return
    comma = ", " if node.args or node.keywords else ""
    words = ("axis", "keepdims") if text.startswith(("np.", "numpy.")) else ("dim", "keepdim")
    more = []
    if name == "dropout" and "training" not in given:
        more.append("training=self.training")
    if name in (*_REDUCTIONS, *_ALONG) and not given & {"dim", "axis"}:
        more += [f"{words[0]}={axis}" for axis in (-1, -2, 1, 0)]
    if name in _REDUCTIONS and words[1] not in given:
        more += [f"{words[1]}=True", f"{words[0]}=-1, {words[1]}=True"]
    for each in more:
        yield from _change(tree, node, f"{text[:-1]}{comma}{each})")


def _derive_dimensions(tree: SolutionTree, node: ast.expr) -> Iterator[Repair]:
    """Along another dimension: several for one, and an index that is a dimension further on."""
    match node:
        case ast.Tuple(elts=[ast.Constant() | ast.UnaryOp(), *_]):
            parent = tree.parents.get(node)
            is_dim = isinstance(parent, ast.keyword) and parent.arg in ("dim", "axis")
            for axis in ("-1", "-2", "0", "1") if is_dim or isinstance(parent, ast.Call) else ():
                yield from _change(tree, node, axis)
        case ast.Subscript(value=value, slice=index) if not isinstance(index, ast.Tuple):
            place = tree.text(index)
            for form in ("[:, {}]", "[..., {}]", "[{}, None]", "[:, :, {}]"):
                yield from _change(tree, node, f"{_atom(tree, value)}{form.format(place)}")


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
            key = (_function_of(tree, node), *_sign(tree, node), len(repairs))
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


def _derive_grouping(tree: SolutionTree, node: ast.expr) -> Iterator[Repair]:
    """Brackets around other parts: a · b + c for a · (b + c), and the reverse."""
    match node:
        case ast.BinOp(
            left=ast.BinOp(left=a, op=ast.Mult(), right=b),
            op=ast.Add() | ast.Sub() as two,
            right=ast.BinOp(left=c, op=ast.Mult() | ast.Div() as three, right=d),
        ):
            one, other, third, last = (_atom(tree, each) for each in (a, b, c, d))
            inner = f"({other} {_SYMBOLS[type(two)]} {third})"
            yield from _change(tree, node, f"({one} * {inner} {_SYMBOLS[type(three)]} {last})")
            return
        case ast.BinOp(left=ast.BinOp(left=a, op=one, right=b), op=two, right=c):
            form = "{} {} ({} {} {})"
        case ast.BinOp(left=a, op=one, right=ast.BinOp(left=b, op=two, right=c)):
            form = "({} {} {}) {} {}"
        case _:
            return
    if type(one) in _SYMBOLS and type(two) in _SYMBOLS:
        parts = (_atom(tree, a), _SYMBOLS[type(one)], _atom(tree, b), _SYMBOLS[type(two)])
        yield from _change(tree, node, f"({form.format(*parts, _atom(tree, c))})")


def _derive_parts(tree: SolutionTree, node: ast.expr) -> Iterator[Repair]:
    """An operand left out."""
    match node:
        case ast.BinOp(left=left, right=right) | ast.BoolOp(values=[left, right]):
            yield from _change(tree, node, _atom(tree, left))
            yield from _change(tree, node, _atom(tree, right))
        case ast.IfExp(body=left, orelse=right):
            yield from _change(tree, node, _atom(tree, left))
            yield from _change(tree, node, _atom(tree, right))


def _derive_slices(tree: SolutionTree, node: ast.expr) -> Iterator[Repair]:
    """Bounds one more or less, or left out."""
    if not isinstance(node, ast.Slice):
        return
    lower = tree.text(node.lower) if node.lower is not None else ""
    upper = tree.text(node.upper) if node.upper is not None else ""
    step = f":{tree.text(node.step)}" if node.step is not None else ""
    bounds = [("1", upper), (lower, "-1")]
    bounds += [(f"{lower} + 1", upper), (f"{lower} - 1", upper)] if lower else []
    bounds += [(lower, f"{upper} + 1"), (lower, f"{upper} - 1")] if upper else []
    bounds += [("", upper), (lower, ""), (upper, lower), (f"-{upper}", ""), ("", f"-{lower}")]
    for first, last in bounds:
        text = f"{first}:{last}{step}"
        if "-:" not in f"{text}:" and not text.startswith("--"):
            yield from _change(tree, node, text)


def _derive_wraps(tree: SolutionTree, node: ast.expr) -> Iterator[Repair]:
    if not isinstance(node, _SMALL) or not isinstance(getattr(node, "ctx", ast.Load()), ast.Load):
        return
    parent = tree.parents.get(node)
    if isinstance(parent, ast.Call) and parent.func is node:
        return
    if isinstance(parent, ast.Attribute) and parent.attr == "shape":
        return
    if isinstance(node, ast.Name) and node.id in _MODULES:
        return
    text = _atom(tree, node)
    for form in _WRAPS:
        yield from _change(tree, node, form.format(text))


def _derive_sums(tree: SolutionTree, node: ast.expr) -> Iterator[Repair]:
    """Another variable added: a residual, or a step that the next one does not see."""
    yield from _derive_with_variable(tree, node, ("+",))


def _derive_additions(tree: SolutionTree, node: ast.expr) -> Iterator[Repair]:
    """Another variable multiplied, divided by, or subtracted."""
    yield from _derive_with_variable(tree, node, ("*", "/", "-"))


def _derive_with_variable(
    tree: SolutionTree, node: ast.expr, symbols: Sequence[str]
) -> Iterator[Repair]:
    parent = tree.parents.get(node)
    is_argument = isinstance(parent, ast.Call) and node in parent.args
    is_value = isinstance(parent, ast.Assign | ast.Return | ast.AugAssign) and isinstance(
        getattr(node, "ctx", ast.Load()), ast.Load
    )
    function = _function_of(tree, node)
    if not (is_argument or is_value) or function is None or function.name == "__init__":
        return
    if isinstance(node, ast.Constant | ast.Tuple | ast.List | ast.JoinedStr | ast.Starred):
        return
    text = _atom(tree, node)
    for other in local_names(function):
        if other != text:
            for symbol in symbols:
                yield from _change(tree, node, f"({text} {symbol} {other})")
