"""Repairs of calls: a related function, a call left out, an argument that is missing."""

import ast
from collections.abc import Iterator

from glassformer.school.practice.repair_edits import Repair, atom, change_node
from glassformer.school.practice.solution_edits import SolutionTree, call_name, receiver

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
_REDUCTIONS = ("sum", "mean", "amax", "max", "min", "amin", "norm", "var", "std", "logsumexp")
_ALONG = (
    *("split", "cumsum", "concatenate", "cat", "stack", "flip", "argmax", "argmin", "sort"),
    "squeeze",
)


def derive_functions(tree: SolutionTree, node: ast.expr) -> Iterator[Repair]:
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
            yield from change_node(tree, node, f"{function}{rest}")


def derive_letters(tree: SolutionTree, node: ast.expr) -> Iterator[Repair]:
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
                yield from change_node(
                    tree, formula, f"{quote}{text[:i]}{other}{text[i + 1 :]}{quote}"
                )


def derive_calls(tree: SolutionTree, node: ast.expr) -> Iterator[Repair]:
    """A call left out, or an argument of it."""
    if not isinstance(node, ast.Call):
        return
    inner = receiver(node)
    if inner is not None and not (isinstance(inner, ast.Name) and inner.id == "self"):
        yield from change_node(tree, node, atom(tree, inner))
    if len(node.args) == 1 and not node.keywords:
        yield from change_node(tree, node, atom(tree, node.args[0]))
    if call_name(node) == "softmax" and inner is not None:
        values = atom(tree, inner)
        yield from change_node(tree, node, f"({values} / {values}.sum(-1, keepdim=True))")
    for part in node.keywords:
        others = [tree.text(each) for each in (*node.args, *node.keywords) if each is not part]
        yield from change_node(tree, node, f"{tree.text(node.func)}({', '.join(others)})")


def derive_keywords(tree: SolutionTree, node: ast.expr) -> Iterator[Repair]:
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
        more.append(f"{words[1]}=True")
        more += [] if given & {"dim", "axis"} else [f"{words[0]}=-1, {words[1]}=True"]
    for each in more:
        yield from change_node(tree, node, f"{text[:-1]}{comma}{each})")


def derive_dimensions(tree: SolutionTree, node: ast.expr) -> Iterator[Repair]:
    """Along another dimension: several for one, and an index that is a dimension further on."""
    match node:
        case ast.Tuple(elts=[ast.Constant() | ast.UnaryOp(), *_]):
            parent = tree.parents.get(node)
            is_dim = isinstance(parent, ast.keyword) and parent.arg in ("dim", "axis")
            for axis in ("-1", "-2", "0", "1") if is_dim or isinstance(parent, ast.Call) else ():
                yield from change_node(tree, node, axis)
        case ast.Subscript(value=value, slice=index) if not isinstance(index, ast.Tuple):
            place = tree.text(index)
            for form in ("[:, {}]", "[..., {}]", "[{}, None]", "[:, :, {}]"):
                yield from change_node(tree, node, f"{atom(tree, value)}{form.format(place)}")
