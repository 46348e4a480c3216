"""Cells in which every name is defined once, as marimo's reactive notebooks demand.

A chapter is one program: a later snippet may use a name again for something else. In a notebook
whose cells run whenever what they read has changed, such a name would be ambiguous. So a definition
that no later cell reads becomes local to its cell (`_x`), and of those that are read, the first
keeps its name and the others are numbered (`x_2`). What one cell alone defines keeps its name.
"""

import ast
import dis
import io
import re
import tokenize
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from string import Formatter
from types import CodeType

from glassformer.errors import ConfigError

_SCOPES = (ast.Lambda, ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)
_FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)
_FORMATTED = re.compile("[rR]?[fF]")  # a tokenizer sees into such strings from Python 3.12 on


@dataclass(frozen=True, slots=True)
class CellNames:
    """The names that a cell defines for others, and those that it reads from others."""

    defined: frozenset[str]
    read: frozenset[str]


def find_names(code: str) -> CellNames:
    """What a cell defines and reads at the level of its module.

    >>> names = find_names("import math; y = [math.sqrt(x) for x in xs]")
    >>> sorted(names.defined), sorted(names.read)
    (['math', 'y'], ['xs'])
    """
    tree = ast.parse(code)
    defined = frozenset(_defined_names(tree))
    return CellNames(defined, frozenset(_read_names(tree)) - defined)


def define_once(cells: Sequence[str]) -> list[str]:
    """The same cells, with names changed so that no two define the same.

    >>> define_once(["x = 1", "y = x", "x = 2; z = x", "x = 3", "print(x)"])
    ['x = 1', 'y = x', '_x = 2; z = _x', 'x_2 = 3', 'print(x_2)']
    """
    names = [find_names(cell) for cell in cells]
    used = set().union(*(each.defined | each.read for each in names))
    renamings: list[dict[str, str]] = [{} for _ in cells]
    for name in sorted(set().union(*(each.defined for each in names))):
        homes = [i for i, each in enumerate(names) if name in each.defined]
        if len(homes) == 1 or name.startswith("_"):
            continue
        for i in homes[1:]:
            if _reads_first(cells[i], name):
                raise ConfigError(
                    f"A cell must not read {name} and define it again, because each name has one "
                    f"definition; this one does: {cells[i]!r}. Use another name."
                )
        n_kept = 0
        for i, end in zip(homes, [*homes[1:], len(cells)], strict=True):
            readers = [j for j in range(i + 1, end) if name in names[j].read]
            n_kept += bool(readers)
            new = _number(name, n_kept, used) if readers else f"_{name}"
            if new != name:
                for j in (i, *readers):
                    renamings[j][name] = new
    return [rename(cell, each) for cell, each in zip(cells, renamings, strict=True)]


def rename(code: str, names: dict[str, str]) -> str:
    """Code with other names at module level; attributes, keywords and functions' own names stay.

    >>> rename("def f(x): return x\\nx = f(x=x).x", {"x": "_x"})
    'def f(x): return x\\n_x = f(x=_x).x'
    """
    if not names:
        return code
    lines = code.splitlines(keepends=True)
    for (row, column), old, new in sorted(_edits(code, names), reverse=True):
        line = lines[row - 1]
        lines[row - 1] = line[:column] + new + line[column + len(old) :]
    return "".join(lines)


def _edits(code: str, names: dict[str, str]) -> Iterator[tuple[tuple[int, int], str, str]]:
    """Place, old and new text of every name and f-string that changes."""
    own = {name: list(_own_places(code, name)) for name in names}
    tokens = list(tokenize.generate_tokens(io.StringIO(code).readline))
    depth = 0
    for before, token, after in zip([None, *tokens], tokens, [*tokens[1:], None], strict=False):
        depth += (
            (token.string in "([{") - (token.string in ")]}") if token.type == tokenize.OP else 0
        )
        if token.type == tokenize.STRING and _FORMATTED.match(token.string):
            known = {n: to for n, to in names.items() if not _is_within(token.start, own[n])}
            yield token.start, token.string, _rename_fields(token.string, known)
        if token.type != tokenize.NAME or token.string not in names:
            continue
        is_attribute = before is not None and before.string == "."
        is_keyword = depth > 0 and after is not None and after.string == "="
        if not (is_attribute or is_keyword or _is_within(token.start, own[token.string])):
            yield token.start, token.string, names[token.string]


def _rename_fields(text: str, names: dict[str, str]) -> str:
    """An f-string with other names in its fields, not in what surrounds and formats them."""
    parts = []
    for literal, field, form, conversion in Formatter().parse(text):
        parts.append(literal.replace("{", "{{").replace("}", "}}"))
        if field is not None:
            for name, new in names.items():
                field = re.sub(rf"(?<![\w.]){name}(?!\w)", new, field)  # noqa: PLW2901
            form = f":{_rename_fields(form, names)}" if form else ""  # noqa: PLW2901
            parts.append(f"{{{field}{f'!{conversion}' if conversion else ''}{form}}}")
    return "".join(parts)


def _own_places(code: str, name: str) -> Iterator[tuple[tuple[int, int], tuple[int, int]]]:
    """From where to where a function or a comprehension has a variable of its own by this name."""
    for node in ast.walk(ast.parse(code)):
        if isinstance(node, _SCOPES + _FUNCTIONS) and name in _bound_names(node):
            first = node.args if isinstance(node, _FUNCTIONS) else node
            start = first.args[0] if isinstance(first, ast.arguments) and first.args else node
            assert node.end_lineno is not None and node.end_col_offset is not None
            yield (start.lineno, start.col_offset), (node.end_lineno, node.end_col_offset)


def _bound_names(scope: ast.AST) -> set[str]:
    if isinstance(scope, _FUNCTIONS):
        inside = [scope.args, *scope.body]
    elif isinstance(scope, ast.Lambda):
        inside = [scope.args]
    else:
        inside = [each.target for each in getattr(scope, "generators", [])]
    nodes = [node for each in inside for node in ast.walk(each)]
    stored = {n.id for n in nodes if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)}
    return stored | {node.arg for node in nodes if isinstance(node, ast.arg)}


def _is_within(
    place: tuple[int, int], ranges: Sequence[tuple[tuple[int, int], tuple[int, int]]]
) -> bool:
    return any(start <= place < end for start, end in ranges)


def _defined_names(node: ast.AST) -> Iterator[str]:
    """What is bound at module level. (From Python 3.12 on, symtable mixes comprehensions in.)"""
    match node:
        case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name) | ast.ClassDef(name=name):
            yield name
            return
        case ast.Lambda() | ast.ListComp() | ast.SetComp() | ast.DictComp() | ast.GeneratorExp():
            return
        case ast.Name(id=name, ctx=ast.Store()) | ast.ExceptHandler(name=str(name)):
            yield name
        case ast.alias(name=name, asname=asname):
            yield asname or name.partition(".")[0]
    for child in ast.iter_child_nodes(node):
        yield from _defined_names(child)


def _read_names(node: ast.AST, own: frozenset[str] = frozenset()) -> Iterator[str]:
    """What is read, and is not a variable of a function's or a comprehension's own."""
    if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load) and node.id not in own:
        yield node.id
    if isinstance(node, _SCOPES + _FUNCTIONS):
        own |= _bound_names(node)
    for child in ast.iter_child_nodes(node):
        yield from _read_names(child, own)


def _reads_first(code: str, name: str) -> bool:
    """Whether the cell's own steps read the name before they define it."""
    compiled: CodeType = compile(code, "cell", "exec")
    steps = (step for step in dis.get_instructions(compiled) if step.argval == name)
    uses = (step.opname for step in steps if step.opname.endswith("_NAME"))
    return next(uses, "") == "LOAD_NAME"


def _number(name: str, n: int, used: set[str]) -> str:
    if n == 1:
        return name
    numbered = f"{name}_{n}"
    if numbered in used:
        return _number(name, n + 1, used)
    used.add(numbered)
    return numbered
