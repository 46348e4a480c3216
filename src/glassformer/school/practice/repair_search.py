"""Looks for the repair of a learner's file: runs in the learner's process, as his code does."""

import ast
import signal
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from functools import cache
from types import FrameType
from typing import Any

from glassformer.school.practice.cases import Case, are_same_result
from glassformer.school.practice.limits import TimeUp
from glassformer.school.practice.module_source import load_source
from glassformer.school.practice.outcome import Outcome, outcomes_agree
from glassformer.school.practice.plain_values import Group, Leaf, Value
from glassformer.school.practice.source_repairs import derive_repairs

# What a module makes of a case, in which some calls are forbidden.
Run = Callable[[Case, Any, tuple[str, ...]], Outcome]
REPAIR_SECONDS = 4.0  # of processor time, for all changes together
_SECONDS_EACH = 0.4


class TooSlow(BaseException):
    """A change made code run on and on; no Exception, so that nothing in the code catches it."""


def find_repairs(
    source: str,
    file: str,
    cases: Sequence[Case],
    expected: Sequence[Outcome],
    first: int,
    forbid: tuple[str, ...],
    run: Run,
) -> list[int]:
    """The number of the first change after which every case holds, and how many cases hold then.

    If there is none: of the first after which the cases hold that return the result that was first
    wrong, and no other case fails that held before. Nothing, if there is no such change either. The
    case that failed first decides on most of them; guarded against forbidden calls, which is
    slow, are only those that hold in it.
    """
    begun = time.process_time()
    partly: list[int] = []
    same = [i for i, case in enumerate(cases) if are_same_result(case, cases[first])]
    # Where 0 is expected throughout, much that is wrong gives it.
    seen = {number for i in same for number in _list_numbers(expected[i].value)}
    can_be_part = len(same) > 1 and len(seen) > 2
    lines = _find_lines(source, file, cases[first], run)

    def holds(i: int, module: Any, forbid: tuple[str, ...] = ()) -> bool:
        return outcomes_agree(cases[i], expected[i], run(cases[i], module, forbid))

    @cache
    def held_before() -> list[bool]:
        module = load_source(source, file, "learner")
        return [holds(i, module, forbid) for i in range(len(expected))]

    for number, repair in enumerate(derive_repairs(source)):
        if time.process_time() - begun > REPAIR_SECONDS:
            break
        if repair.line not in lines:
            continue
        try:
            with _limit_time(_SECONDS_EACH):
                module = load_source(repair.source, file, "learner")
                if not holds(first, module):
                    continue
            with _limit_time(REPAIR_SECONDS):
                held = [holds(i, module, forbid) for i in range(len(expected))]
            if all(held):
                return [number, len(held)]
            is_better = can_be_part and all(held[i] for i in same)
            kept = is_better and all(
                now for now, was in zip(held, held_before(), strict=True) if was
            )
            if kept and not partly:
                partly = [number, sum(held)]
        except TimeUp:
            raise
        except BaseException:  # a forbidden call, an exit, no end: not the change looked for
            continue
    return partly


def _list_numbers(value: Value | None) -> Iterator[float]:
    """The first numbers of a result."""
    if isinstance(value, Group):
        for part in value.parts.values():
            yield from _list_numbers(part)
    elif isinstance(value, Leaf):
        yield from value.data.reshape(-1)[:20].tolist()


def _find_lines(source: str, file: str, case: Case, run: Run) -> set[int]:
    """The lines of the statements that run in a case: a change elsewhere cannot repair it."""
    seen: set[int] = set()

    def on_line(frame: FrameType, _event: str, _arg: Any) -> Any:
        seen.add(frame.f_lineno)
        return on_line

    def on_call(frame: FrameType, _event: str, _arg: Any) -> Any:
        return on_line if frame.f_code.co_filename == file else None

    module = load_source(source, file, "learner")

    def call(module: Any, **inputs: Any) -> Any:
        sys.settrace(on_call)
        try:
            return case.call(module, **inputs)
        finally:
            sys.settrace(None)

    run(replace(case, call=call), module, ())
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.stmt) and not hasattr(node, "body"):
            span = range(node.lineno, (node.end_lineno or node.lineno) + 1)
            if seen.intersection(span):
                seen.update(span)
    return seen


@contextmanager
def _limit_time(seconds: float) -> Iterator[None]:
    def stop(_signal: int, _frame: FrameType | None) -> None:
        raise TooSlow

    before = signal.signal(signal.SIGVTALRM, stop)
    signal.setitimer(signal.ITIMER_VIRTUAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_VIRTUAL, 0)
        signal.signal(signal.SIGVTALRM, before)
