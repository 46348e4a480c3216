"""Which functions of a file a case went through: what each was given, and what it returned.

When no known fault explains a wrong result, this tells which part to look at: the first function
that the exercise names, was given what the solution's was given, and returned something else.
"""

import ast
import sys
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from inspect import CO_GENERATOR
from itertools import groupby
from types import FrameType, TracebackType
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch.utils._python_dispatch import _disable_current_modes

from glassformer.school.practice.plain_values import Leaf, TooLarge, Value, as_data, to_plain

MOST_STEPS = 32
MOST_VALUES = 24  # of variables, in each step
_MOST_CALLS = 20_000  # looked at in a case: a long training is not slowed down
_MOST_BYTES = 1 << 15  # of numbers kept for each function


@dataclass(frozen=True, slots=True)
class TrailValue:
    """What a line assigned to a variable."""

    name: str
    line: int
    value: Value


@dataclass(frozen=True, slots=True)
class TrailStep:
    """One call of a function: where it is defined, where it returned, what went in and out."""

    name: str
    defined: int
    line: int | None
    depth: int
    given: tuple[Value, ...]
    result: Value | None
    values: tuple[TrailValue, ...] = ()  # in the order in which they were assigned

    def as_data(self) -> dict[str, Any]:
        return {
            "name": self.name,
            "defined": self.defined,
            "line": self.line,
            "depth": self.depth,
            "given": [as_data(value) for value in self.given],
            "result": None if self.result is None else as_data(self.result),
            "values": [
                {"name": each.name, "line": each.line, "value": as_data(each.value)}
                for each in self.values
            ],
        }

    @property
    def place(self) -> int:
        """The line to look at: where the value left, or the beginning if there was none."""
        returns_nothing = isinstance(self.result, Leaf) and self.result.kind == "none"
        return self.defined if returns_nothing or self.line is None else self.line


class Trail:
    """Writes down the steps through one file while it is entered."""

    def __init__(self, file: str) -> None:
        self.steps: list[TrailStep] = []
        self._file = file
        self._open: list[_OpenCall] = []
        self._n_calls = 0

    def __enter__(self) -> "Trail":
        sys.settrace(self._on_call)
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        sys.settrace(None)

    def _on_call(self, frame: FrameType, _event: str, _arg: Any) -> Callable[..., Any] | None:
        """Called for every function that begins; what it returns is called inside of that one."""
        self._n_calls += 1
        if self._n_calls > _MOST_CALLS or len(self.steps) + len(self._open) >= MOST_STEPS:
            sys.settrace(None)
        elif self._is_traced(frame):
            code = frame.f_code
            names = code.co_varnames[: code.co_argcount + code.co_kwonlyargcount]
            given = tuple(_copy_value(frame.f_locals[name]) for name in names if name != "self")
            self._open.append(_OpenCall(frame, given))
            return self._on_line
        return None

    def _on_line(self, frame: FrameType, event: str, arg: Any) -> Callable[..., Any]:
        """Called before every line of a function that is followed, and when it returns."""
        if self._open and self._open[-1].frame is frame:
            self._open[-1].look(frame.f_lineno)
            if event == "return":
                call = self._open.pop()
                code = frame.f_code
                name, first = code.co_qualname[:200], code.co_firstlineno
                depth, values = len(self._open), tuple(call.values)
                about = (name, first, frame.f_lineno, depth, call.given)
                self.steps.append(TrailStep(*about, _copy_value(arg), values))
        return self._on_line

    def _is_traced(self, frame: FrameType) -> bool:
        code = frame.f_code
        is_ours = code.co_filename == self._file and not code.co_flags & CO_GENERATOR
        return is_ours and "<" not in code.co_qualname


class _OpenCall:
    """A call that has not returned: what it was given, and what its lines have assigned so far."""

    def __init__(self, frame: FrameType, given: tuple[Value, ...]) -> None:
        self.frame, self.given = frame, given
        self.values: list[TrailValue] = []
        self._seen: dict[str, Any] = dict(frame.f_locals)
        self._line = frame.f_lineno

    def look(self, line: int) -> None:
        """Note what the line before this one has assigned."""
        for name, value in self.frame.f_locals.items():
            is_new = name not in self._seen or self._seen[name] is not value
            if is_new and isinstance(value, Tensor | np.ndarray) and len(self.values) < MOST_VALUES:
                self.values.append(TrailValue(name[:200], self._line, _copy_value(value)))
            self._seen[name] = value
        self._line = line


def _copy_value(value: Any) -> Value:
    # What is measured while the code runs (calls, sizes) must not see our own copies.
    with torch._C.DisableTorchFunction(), _disable_current_modes():
        try:
            return to_plain(value, _MOST_BYTES)
        except (TooLarge, RuntimeError, TypeError):
            return to_plain(_Uncopied())


class _Uncopied:
    """Stands for a value that was too large, or in no state to be copied."""


def stub_functions(stub: str) -> frozenset[str]:
    """The functions and methods that an exercise names.

    >>> sorted(stub_functions("class A:\\n    def f(self): ...\\ndef g(): ..."))
    ['A.f', 'g']
    """
    names = set()
    for node in ast.parse(stub).body:
        if isinstance(node, ast.FunctionDef):
            names.add(node.name)
        elif isinstance(node, ast.ClassDef):
            methods = [each for each in node.body if isinstance(each, ast.FunctionDef)]
            names |= {f"{node.name}.{method.name}" for method in methods}
    return frozenset(names)


def find_wrong_step(
    steps: Sequence[TrailStep],
    solution: Sequence[TrailStep],
    names: Collection[str],
    agree: Callable[[Value, Value], bool],
) -> TrailStep | None:
    """The first step that went wrong by itself; else the last that the checks called."""
    for step in steps:
        alike = [
            other
            for other in solution
            if other.name == step.name and _all_agree(step.given, other.given, agree)
        ]
        if step.name not in names or step.result is None or not alike:
            continue
        if not any(o.result is not None and agree(o.result, step.result) for o in alike):
            return step
    outermost = [step for step in steps if step.depth == 0]
    return outermost[-1] if outermost else None


def _all_agree(
    ones: Sequence[Value], others: Sequence[Value], agree: Callable[[Value, Value], bool]
) -> bool:
    return len(ones) == len(others) and all(map(agree, ones, others))


def find_first_doubt(
    step: TrailStep, solution: Sequence[TrailStep], agree: Callable[[Value, Value], bool]
) -> int:
    """The line after the last one of a step that assigned what the solution computes as well.

    A value of the learner's own need not be wrong because the solution has no such value; what
    comes after the last one that both have is the part to look at.
    """
    known = [each.value for other in solution for each in other.values]
    known += [given for other in solution for given in other.given]
    known += [other.result for other in solution if other.result is not None]
    lines = [(line, list(group)) for line, group in groupby(step.values, key=lambda v: v.line)]
    is_right = [
        all(any(agree(value, each.value) for value in known) for each in group)
        for _, group in lines
    ]
    if True not in is_right:
        return step.place
    after = lines[len(is_right) - is_right[::-1].index(True) :]
    return after[0][0] if after else step.place
