"""Masks written as text, such as `causal & window(3)`: read as a formula, never run as code."""

import ast
import operator
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

import torch

from glassformer.errors import ConfigError
from glassformer.functional.masks.mask import Mask
from glassformer.functional.masks.positional import Causal, Prefix, Window
from glassformer.functional.masks.sequences import Documents, Padding
from glassformer.languages import Language

_NUMBER, _LIST, _EITHER = "mask.kind.number", "mask.kind.list", "mask.kind.either"
_WORD = "mask.kind.word"
_MOST_OPERATORS = 200  # each nests one deeper, and nesting has an end
_LARGEST = 2**31 - 1
_OPERATORS = {ast.BitAnd: operator.and_, ast.BitOr: operator.or_}


class Named(NamedTuple):
    """A mask that may be called by name: what builds it, what it takes, how it is written."""

    build: Callable[..., Mask]
    takes: dict[str, str]  # parameter → the key of what it must be
    n_needed: int
    example: str


MASKS = {
    "causal": Named(Causal, {"offset": _NUMBER}, 0, "causal"),
    "window": Named(Window, {"left": _NUMBER, "right": _NUMBER, "offset": _NUMBER}, 1, "window(3)"),
    "prefix": Named(Prefix, {"length": _EITHER}, 1, "prefix(4)"),
    "padding": Named(Padding, {"lengths": _LIST, "of": _WORD, "side": _WORD}, 1, "padding([3, 5])"),
    "documents": Named(Documents, {"ids": _LIST, "query_ids": _LIST}, 1, "documents([0, 0, 1, 1])"),
}


def read_mask(expression: str, language: Language) -> Mask:
    """The mask that an expression describes; what a mask without tensors prints reads as the same.

    >>> read_mask("causal & ~window(left=1)", Language("en"))
    Causal() & ~Window(left=1)
    """
    return _Reader(expression.strip(), language).read()


@dataclass(frozen=True)
class _Reader:
    expression: str
    language: Language

    def read(self) -> Mask:
        try:
            with warnings.catch_warnings(action="ignore"):
                tree = ast.parse(self.expression, mode="eval")
        except (SyntaxError, ValueError, RecursionError, MemoryError):
            masks, got = _all_masks(), _shorten(self.expression)
            raise self._error("mask.error.syntax", masks=masks, got=got) from None
        n_operators = sum(isinstance(node, ast.BinOp | ast.UnaryOp) for node in ast.walk(tree))
        if n_operators > _MOST_OPERATORS:
            raise self._error("mask.error.long", most=_MOST_OPERATORS, got=n_operators)
        return self._mask(tree.body)

    def _mask(self, node: ast.expr) -> Mask:
        match node:
            case ast.BinOp(left, op, right) if type(op) in _OPERATORS:
                return _OPERATORS[type(op)](self._mask(left), self._mask(right))
            case ast.UnaryOp(ast.Invert(), inner):
                return ~self._mask(inner)
            case ast.Name(name):
                return self._build(name, node, [], [])
            case ast.Call(ast.Name(name), arguments, keywords):
                return self._build(name, node, arguments, keywords)
            case ast.BinOp() | ast.UnaryOp() | ast.BoolOp() | ast.Compare():
                raise self._error("mask.error.operator", got=self._source(node))
        raise self._error("mask.error.part", got=self._source(node), masks=_all_masks())

    def _build(
        self, name: str, node: ast.expr, arguments: list[ast.expr], keywords: list[ast.keyword]
    ) -> Mask:
        name, typed = name.lower(), name  # Causal() is how a mask prints
        if name not in MASKS:
            raise self._error("mask.error.name", got=repr(typed), masks=_all_masks())
        mask = MASKS[name]
        if len(arguments) > len(mask.takes):
            raise self._takes(name, self._source(node))
        given = dict(zip(mask.takes, arguments, strict=False))
        for keyword in keywords:
            if keyword.arg not in mask.takes or keyword.arg in given:
                raise self._takes(name, self._source(node))
            given[keyword.arg] = keyword.value
        if len(given) < mask.n_needed:
            raise self._error("mask.error.missing", name=name, example=mask.example)
        values = {key: self._value(name, key, value) for key, value in given.items()}
        try:
            return mask.build(**values)
        except ConfigError as error:  # named as it was typed
            raise ConfigError(str(error).replace(mask.build.__name__, name)) from None

    def _value(self, name: str, parameter: str, node: ast.expr) -> Any:
        kind = MASKS[name].takes[parameter]
        number = _read_integer(node)
        if number is not None and kind in (_NUMBER, _EITHER):
            return number
        if isinstance(node, ast.List) and node.elts and kind in (_LIST, _EITHER):
            numbers = [_read_integer(item) for item in node.elts]
            if None not in numbers:
                return torch.tensor(numbers) if kind == _EITHER else numbers
        if kind == _WORD and isinstance(node, ast.Constant) and isinstance(node.value, str):
            return node.value
        raise self._error(
            "mask.error.value",
            name=name,
            parameter=parameter,
            kind=self.language.say(kind),
            got=self._source(node),
        )

    def _takes(self, name: str, got: str) -> ConfigError:
        takes = ", ".join(MASKS[name].takes)
        return self._error("mask.error.parameter", name=name, takes=takes, got=got)

    def _source(self, node: ast.expr) -> str:
        return _shorten(ast.get_source_segment(self.expression, node) or "")

    def _error(self, key: str, **values: object) -> ConfigError:
        return ConfigError(self.language.say(key, **values))


def _read_integer(node: ast.expr) -> int | None:
    match node:
        case ast.Constant(int(value)) if type(value) is int and value <= _LARGEST:
            return value
        case ast.UnaryOp(ast.USub(), ast.Constant(int(value))) if type(value) is int:
            return -value if value <= _LARGEST else None
    return None


def _shorten(text: str, most: int = 60) -> str:
    return repr(text if len(text) <= most else f"{text[: most - 1]}…")


def _all_masks() -> str:
    return ", ".join(mask.example for mask in MASKS.values())
