"""Repairs of operators, numbers and names: another one, another order, one more or one less."""

import ast
from collections.abc import Iterator, Sequence

from glassformer.school.practice.repair_edits import Repair, atom, change_node, exchange_nodes
from glassformer.school.practice.solution_edits import SolutionTree, call_name
from glassformer.school.practice.value_faults import function_of, local_names

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
# Numbers that change nothing behind an operator.
_IDLE = {"+": 0, "-": 0, "*": 1, "/": 1, "**": 1}
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
_TURNS = ("{}.transpose(-2, -1)", "{}.T")
_SIGNS = ("-{}", "~{}", "(1 - {})")  # nothing that is done with a size
_TURNING = {"T", "mT", "t", "transpose", "swapaxes", "permute"}
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


def derive_comparisons(tree: SolutionTree, node: ast.expr) -> Iterator[Repair]:
    """Another comparison."""
    match node:
        case ast.Compare(left=left, ops=[op], comparators=[right]):
            for other in _OPERATORS.get(type(op), ()):
                yield from change_node(
                    tree, node, f"({tree.text(left)} {other} {tree.text(right)})"
                )


def derive_order(tree: SolutionTree, node: ast.expr) -> Iterator[Repair]:
    """Operands, arguments or nested calls in the other order."""
    match node:
        case ast.BinOp(left=left, op=op, right=right) if type(op) in _SYMBOLS:
            if not isinstance(op, ast.Add | ast.Mult):
                one, other = atom(tree, left), atom(tree, right)
                yield from change_node(tree, node, f"({other} {_SYMBOLS[type(op)]} {one})")
        case ast.Call(func=outer, args=[ast.Call(func=inner, args=[x], keywords=[])], keywords=[]):
            yield from change_node(
                tree, node, f"{tree.text(inner)}({tree.text(outer)}({tree.text(x)}))"
            )
    match node:
        case ast.BinOp(left=ast.BinOp(left=a, op=ast.Mult(), right=b), op=ast.Div(), right=c):
            parts = (atom(tree, each) for each in (a, c, b))
            yield from change_node(tree, node, "({} * {} / {})".format(*parts))
    match node:
        case ast.Call(args=[one, other, *_]):
            yield from exchange_nodes(tree, node, one, other)
        case ast.Tuple(elts=[one, other], ctx=ast.Load()):
            yield from exchange_nodes(tree, node, one, other)
        case ast.IfExp(body=one, orelse=other):
            yield from exchange_nodes(tree, node, one, other)
    match node:
        case ast.Call(args=[first, one, other, *_]):
            yield from exchange_nodes(tree, node, one, other)
            yield from exchange_nodes(tree, node, first, other)
    match node:
        case ast.Call(func=function, args=[first, *others], keywords=[]) if len(others) > 1:
            moved = ", ".join(tree.text(each) for each in (*others, first))
            yield from change_node(tree, node, f"{tree.text(function)}({moved})")


def derive_numbers(tree: SolutionTree, node: ast.expr) -> Iterator[Repair]:
    """Another number, or a variable in the place of one."""
    match node:
        case ast.Constant(value=bool(value)):
            yield from change_node(tree, node, str(not value))
        case ast.UnaryOp(op=ast.USub(), operand=ast.Constant(value=int(value))):
            for other in (-value - 1, -value + 1, 0, 1, 2, value):
                yield from change_node(tree, node, str(other))
        case ast.Constant(value=int(value)):
            for other in dict.fromkeys((value + 1, value - 1, -1, -2, 0, 1, 2, -value, -3)):
                if other != value and not _is_idle(tree, node, other):
                    text = str(other)
                    in_sum = isinstance(tree.parents.get(node), ast.BinOp | ast.UnaryOp)
                    yield from change_node(
                        tree, node, f"({text})" if in_sum and other < 0 else text
                    )
        case ast.Constant(value=float(value)):
            function = function_of(tree, node)
            for name in local_names(function) if function is not None else ():
                yield from change_node(tree, node, name)
            for other in dict.fromkeys((-value, 2 * value, value / 2, 0.0, 1.0, 0.5, 10 * value)):
                if other != value:
                    yield from change_node(tree, node, f"({other!r})" if other < 0 else repr(other))


def _is_idle(tree: SolutionTree, node: ast.expr, number: int) -> bool:
    """Whether a number in the place of a node might as well be left out, as 0 in a sum."""
    match tree.parents.get(node):
        case ast.BinOp(op=op, right=right):
            return _IDLE.get(_SYMBOLS.get(type(op), "")) == number and (
                right is node or isinstance(op, ast.Add | ast.Mult)
            )
    return False


def derive_names(tree: SolutionTree, node: ast.expr) -> Iterator[Repair]:
    """Another variable, layer or parameter."""
    match node:
        case ast.Name(id=name, ctx=ast.Load()):
            function = function_of(tree, node)
            names = local_names(function) if function is not None else []
            for other in names if name in names else ():
                if other != name:
                    yield from change_node(tree, node, other)
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
                yield from change_node(tree, node, f"self.{other}")


def derive_operators(tree: SolutionTree, node: ast.expr) -> Iterator[Repair]:
    """Another operator, a sign left out, or a division that rounds up."""
    match node:
        case ast.BinOp(left=left, op=op, right=right):
            one, other = atom(tree, left), atom(tree, right)
            for symbol in _OPERATORS.get(type(op), ()):
                if other != str(_IDLE.get(symbol)):
                    yield from change_node(tree, node, f"({one} {symbol} {other})")
            if isinstance(op, ast.FloorDiv):
                yield from change_node(tree, node, f"-(-{one} // {other})")
        case ast.BoolOp(op=op, values=[one, *others]):
            word = "or" if isinstance(op, ast.And) else "and"
            text = f" {word} ".join(atom(tree, each) for each in (one, *others))
            yield from change_node(tree, node, f"({text})")
        case ast.UnaryOp(operand=operand) if not isinstance(operand, ast.Constant):
            yield from change_node(tree, node, atom(tree, operand))


def derive_grouping(tree: SolutionTree, node: ast.expr) -> Iterator[Repair]:
    """Brackets around other parts: a · b + c for a · (b + c), and the reverse."""
    match node:
        case ast.BinOp(
            left=ast.BinOp(left=a, op=ast.Mult(), right=b),
            op=ast.Add() | ast.Sub() as two,
            right=ast.BinOp(left=c, op=ast.Mult() | ast.Div() as three, right=d),
        ):
            one, other, third, last = (atom(tree, each) for each in (a, b, c, d))
            inner = f"({other} {_SYMBOLS[type(two)]} {third})"
            yield from change_node(tree, node, f"({one} * {inner} {_SYMBOLS[type(three)]} {last})")
            return
        case ast.BinOp(left=ast.BinOp(left=a, op=one, right=b), op=two, right=c):
            form = "{} {} ({} {} {})"
        case ast.BinOp(left=a, op=one, right=ast.BinOp(left=b, op=two, right=c)):
            form = "({} {} {}) {} {}"
        case _:
            return
    if type(one) in _SYMBOLS and type(two) in _SYMBOLS:
        is_number = isinstance(b, ast.UnaryOp) and isinstance(b.operand, ast.Constant)
        middle = tree.text(b) if is_number else atom(tree, b)
        parts = (atom(tree, a), _SYMBOLS[type(one)], middle, _SYMBOLS[type(two)])
        yield from change_node(tree, node, f"({form.format(*parts, atom(tree, c))})")


def derive_reach(tree: SolutionTree, node: ast.expr) -> Iterator[Repair]:
    """A function of one operand instead of both: f(a · b) for f(a) · b, and the reverse."""
    match node:
        case ast.Call(func=function, args=[ast.BinOp(left=one, op=op, right=other)], keywords=[]):
            symbol, name = _SYMBOLS.get(type(op)), tree.text(function)
            if symbol is not None:
                first, second = tree.text(one), tree.text(other)
                yield from change_node(
                    tree, node, f"({name}({first}) {symbol} {atom(tree, other)})"
                )
                yield from change_node(tree, node, f"({atom(tree, one)} {symbol} {name}({second}))")
        case ast.BinOp(
            left=ast.Call(func=function, args=[one], keywords=[]) as call, op=op, right=other
        ):
            if type(op) in _SYMBOLS and not call_name(call).endswith("_like"):
                inside = f"{atom(tree, one)} {_SYMBOLS[type(op)]} {atom(tree, other)}"
                yield from change_node(tree, node, f"{tree.text(function)}({inside})")


def derive_parts(tree: SolutionTree, node: ast.expr) -> Iterator[Repair]:
    """An operand left out."""
    match node:
        case ast.BinOp(left=left, right=right) | ast.BoolOp(values=[left, right]):
            yield from change_node(tree, node, atom(tree, left))
            yield from change_node(tree, node, atom(tree, right))
        case ast.IfExp(body=left, orelse=right):
            yield from change_node(tree, node, atom(tree, left))
            yield from change_node(tree, node, atom(tree, right))


def derive_slices(tree: SolutionTree, node: ast.expr) -> Iterator[Repair]:
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
            yield from change_node(tree, node, text)


def derive_wraps(tree: SolutionTree, node: ast.expr) -> Iterator[Repair]:
    """A value with what it may lack around it."""
    if not isinstance(node, _SMALL) or not isinstance(getattr(node, "ctx", ast.Load()), ast.Load):
        return
    parent = tree.parents.get(node)
    if isinstance(parent, ast.Call) and parent.func is node:
        return
    if isinstance(parent, ast.Attribute) and parent.attr == "shape":
        return
    if isinstance(node, ast.Name) and node.id in _MODULES:
        return
    text = atom(tree, node)
    left_out = (_TURNS if _is_turned(tree, node) else ()) + (_SIGNS if _is_size(node) else ())
    for form in _WRAPS:
        if form not in left_out:
            shown = tree.text(node) if "({})" in form else text
            yield from change_node(tree, node, form.format(shown))


def _is_size(node: ast.expr) -> bool:
    match node:
        case ast.Subscript(value=ast.Attribute(attr="shape")):
            return True
        case ast.Call(func=ast.Attribute(attr="size") | ast.Name(id="len")):
            return True
    return False


def _is_turned(tree: SolutionTree, node: ast.AST) -> bool:
    """Whether a value is transposed further on: to transpose it here only undoes that."""
    parent = tree.parents.get(node)
    match parent:
        case ast.Attribute(attr=name) if name in _TURNING:
            return True
        case ast.Attribute() | ast.Subscript(value=_) if parent.value is node:
            return _is_turned(tree, parent)
        case ast.Call(func=function) if function is node:
            return _is_turned(tree, parent)
    return False


def derive_sums(tree: SolutionTree, node: ast.expr) -> Iterator[Repair]:
    """Another variable added: a residual, or a step that the next one does not see."""
    yield from _derive_with_variable(tree, node, ("+",))


def derive_additions(tree: SolutionTree, node: ast.expr) -> Iterator[Repair]:
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
    function = function_of(tree, node)
    if not (is_argument or is_value) or function is None or function.name == "__init__":
        return
    if isinstance(parent, ast.Call) and call_name(parent).endswith("_like"):  # only shapes count
        return
    if isinstance(node, ast.Constant | ast.Tuple | ast.List | ast.JoinedStr | ast.Starred):
        return
    text = atom(tree, node)
    for other in local_names(function):
        if other != text and not _is_truth(tree, function, other):
            for symbol in symbols:
                yield from change_node(tree, node, f"({text} {symbol} {other})")


def _is_truth(tree: SolutionTree, function: ast.FunctionDef, name: str) -> bool:
    """Whether a variable holds booleans, which nobody means to add."""
    for node in ast.walk(function):
        match node:
            case ast.Assign(targets=[ast.Name(id=target)], value=value) if target == name:
                is_test = isinstance(value, ast.Compare | ast.BoolOp)
                if is_test or "bool" in tree.text(value):
                    return True
    return False
