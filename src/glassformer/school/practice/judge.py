"""The judge: runs the solution, compares the learner's outcomes with it, and says what is wrong."""

import ast
from collections.abc import Callable, Sequence
from copy import copy
from dataclasses import replace
from functools import cache, partial
from typing import Any

import numpy as np
from torch import Tensor

from glassformer.school.practice.call_trail import (
    Trail,
    TrailStep,
    find_first_doubt,
    find_wrong_step,
    stub_functions,
)
from glassformer.school.practice.capstone.kit import WHOLE
from glassformer.school.practice.cases import Case
from glassformer.school.practice.comparison import Difference, find_difference
from glassformer.school.practice.derived_faults import NamedMistake
from glassformer.school.practice.exercise import Exercise, Fault
from glassformer.school.practice.fault_naming import (
    find_definition,
    find_fault_line,
    find_function_lines,
)
from glassformer.school.practice.findings import difference_finding, failure_finding
from glassformer.school.practice.messages import Transcript
from glassformer.school.practice.mistake_naming import name_mistake
from glassformer.school.practice.outcome import Outcome, values_agree
from glassformer.school.practice.plain_values import Leaf, find_blanks, flatten_numbers, to_plain
from glassformer.school.practice.report import CheckResult, Finding, GradingReport
from glassformer.school.practice.runner import load_cases, load_source, run_case
from glassformer.school.practice.source_repairs import PARTLY, find_repair
from glassformer.school.practice.stops import report_stop
from glassformer.school.practice.weights_probe import (
    TELLING_WEIGHTS,
    find_wrong_weight,
    make_probe,
)

# Given the first case that failed and what is expected; what it returns waits for the result.
StartRepair = Callable[[int, Sequence[Outcome]], Callable[[], Transcript]]
_MOST_PLACES = 4
_SOLUTION = "solution.py"


class Judge:
    """Everything about one grading that does not depend on the learner's process."""

    def __init__(self, exercise: Exercise, source: str, seed: int) -> None:
        self.exercise, self.source = exercise, source
        self.cases: list[Case] = list(load_cases(exercise, seed))
        self.solution = exercise.solution
        self.module = load_source(self.solution, _SOLUTION, "solution")
        self.expected = [self._expect(case) for case in self.cases]
        for case, outcome in zip(self.cases, self.expected, strict=True):
            assert outcome.value is not None, f"{exercise.name}: {case.name}: {outcome}"
        self._measurement = cache(lambda: dict(self.module.measure()))  # of a predict exercise
        self.known: dict[str, Callable[[int], Outcome]] = {}  # sources that need not be run again

    def share(self, source: str) -> "Judge":
        """A judge of another source, with the same cases and what is known of them."""
        other = copy(self)
        other.source = source
        return other

    def _expect(self, case: Case) -> Outcome:
        if case.expected is not None:
            return Outcome(to_plain(case.expected))
        return run_case(case, self.module)

    def report(
        self,
        got: Sequence[Outcome],
        stop: dict[str, Any] | None,
        retrace: Callable[[int], Transcript] | None = None,
        repair: StartRepair | None = None,
    ) -> GradingReport:
        """The result of the learner's file: all outcomes, or those before it stopped.

        `retrace` runs a case of the learner's once more and returns its steps; `repair` looks for
        a small change of the file after which every case holds, while a name is looked for here.
        """
        held = [self._compare(i, outcome) is None for i, outcome in enumerate(got)]
        names = [case.name for case in self.cases]
        checked = tuple(
            CheckResult(name, held[i] if i < len(held) else None) for i, name in enumerate(names)
        )
        if all(held) and stop is None and len(got) == len(self.cases):
            return self._report(passed=True, checked=checked, measured=self._measure(got))
        if all(held):
            reached = min(len(got), len(names) - 1)
            case = names[reached] if stop is not None and stop.get("begun") else None
            return report_stop(self.exercise, stop or {"stop": "died"}, checked, case)
        first = held.index(False)
        return self._report_wrong(got, first, checked, retrace, repair)

    def _report_wrong(
        self,
        got: Sequence[Outcome],
        first: int,
        checked: tuple[CheckResult, ...],
        retrace: Callable[[int], Transcript] | None,
        repair: StartRepair | None,
    ) -> GradingReport:
        outcome, case = got[first], self.cases[first]
        kind, finding, tables = self._describe_failure(first, outcome)
        named = None
        if kind not in ("empty", "nothing", "changed", "choice"):
            about = (self.cases, self.expected, got, self.load)
            start = partial(self._start_repair, repair, first)
            named = name_mistake(self.exercise, *about, start)
        faults = named.faults if named is not None else ()
        names_faults = all(fault.name != self.exercise.planted for fault in faults)
        seen = None
        if retrace is not None and not case.loose and outcome.failure != "raised":
            seen = retrace(first)
        step, trail = self._find_wrong_step(case, seen)
        detail = None
        if named is None and seen is not None:
            detail = self._read_weights(case, seen)
            if detail is not None and detail.key in TELLING_WEIGHTS:
                named, detail = NamedMistake((), (detail,), None), None
        # Where an input was changed is anywhere in the function, not where it returned.
        doubt = step and find_first_doubt(step, trail, partial(values_agree, case))
        doubt = step.defined if step is not None and outcome.failure == "changed" else doubt
        line = outcome.line if named is None or named.line is None else named.line
        if named is not None and named.source is not None and names_faults:
            look = Fault(name="", source=named.source, text={}, look=named.look)
            lines = None if step is None else find_function_lines(self.source, step.defined)
            entry = self.exercise.entry
            line = find_fault_line(look, self.solution, self.source, entry, lines) or doubt
        elif line is None:
            names = case.names if case.loose else self.exercise.entry
            line = doubt or find_definition(self.source, names)
        return self._report(
            passed=False,
            kind="fault" if named is not None and names_faults else kind,
            checked=checked,
            case=case.name,
            given=_format_shapes(case),
            finding=finding,
            faults=tuple(fault.name for fault in faults),
            names_faults=names_faults,
            explained=named.findings if named is not None and names_faults else (),
            detail=detail,
            line=line,
            tables=None if self.exercise.hides_numbers else tables,
            measured=self._measure(got),
        )

    def _start_repair(
        self, repair: StartRepair | None, first: int
    ) -> Callable[[], NamedMistake | None]:
        """Let the learner's own process look for a change that repairs; the result waits for it."""
        if repair is None or self.exercise.kit is not None:
            return lambda: None
        wait = repair(first, self.expected)

        def find() -> NamedMistake | None:
            match wait().repairs:
                case (number, n_held):
                    found = find_repair(self.source, number)
                case _:
                    return None
            if found is None:
                return None
            finding = found.finding
            if n_held < len(self.cases):
                finding = Finding(PARTLY[finding.key], finding.values)
            return NamedMistake((), (finding,), None, line=found.line)

        return cache(find)

    def load(self, source: str) -> Callable[[int], Outcome]:
        """A faulty source as a function from the number of a case to its outcome."""
        if source in self.known:
            return self.known[source]
        try:
            module = load_source(source, "fault.py", "fault")
        except Exception as error:
            failed = Outcome(failure="raised", error=type(error).__name__)
            return lambda _: failed
        return cache(lambda number: run_case(self.cases[number], module))

    def _compare(self, i: int, outcome: Outcome) -> Difference | str | None:
        if outcome.value is None:
            return outcome.failure
        case, expected = self.cases[i], self.expected[i].value
        assert expected is not None
        return find_difference(
            expected,
            outcome.value,
            names=case.names,
            tolerance=case.tolerance,
            loose=case.loose,
        )

    def _describe_failure(
        self, i: int, outcome: Outcome
    ) -> tuple[str, Finding, dict[str, Any] | None]:
        case, value = self.cases[i], outcome.value
        if value is None:
            return outcome.failure, failure_finding(outcome), None
        subject = (
            " = ".join(case.names) if case.loose else _find_subject(self.exercise, self.source)
        )
        if places := find_blanks(value, case.names[0] if case.names else "result"):
            shown = ", ".join(places[:_MOST_PLACES]) + " …" * (len(places) > _MOST_PLACES)
            return "empty", Finding("practice.found.empty", {"places": shown}), None
        if isinstance(value, Leaf) and value.kind == "none":
            return "nothing", Finding("practice.found.nothing", {"name": subject}), None
        if case.choices and not self._is_choice(case, value):
            listed = ", ".join(repr(choice) for choice in case.choices)
            return (
                "choice",
                Finding("practice.found.choice", {"name": subject, "choices": listed}),
                None,
            )
        found = self._compare(i, outcome)
        assert isinstance(found, Difference)
        finding = difference_finding(found, hidden=self.exercise.hides_numbers)
        return found.what, finding, found.tables

    def _is_choice(self, case: Case, value: Any) -> bool:
        flat = flatten_numbers(value)
        if flat is None:
            return False
        said = flat.text if flat.kind == "text" else flat.data.tolist()
        return said in case.choices

    def _measure(self, got: Sequence[Outcome]) -> dict[str, Any] | None:
        """The measurement of a predict exercise, once something has been predicted.

        Of a model joined from parts, the tokens that it wrote.
        """
        case = self.cases[0]
        if case.name == WHOLE and got and isinstance(tokens := got[0].value, Leaf):
            return {"tokens": tokens.data.ravel().tolist()}
        if self.exercise.kind != "predict" or not got or got[0].value is None:
            return None
        if not self._is_choice(case, got[0].value):
            return None
        return {str(name): value for name, value in self._measurement().items()}

    def _find_wrong_step(
        self, case: Case, seen: Transcript | None
    ) -> tuple[TrailStep | None, Sequence[TrailStep]]:
        """The learner's step that went wrong by itself, and the steps of the solution."""
        if seen is None or not seen.trail:
            return None, ()
        trail = Trail(_SOLUTION)

        def call(module: Any, **inputs: Any) -> Any:
            with trail:
                return case.call(module, **inputs)

        run_case(replace(case, call=call), self.module)
        known = stub_functions(self.exercise.stub)
        agree = partial(values_agree, case)
        return find_wrong_step(seen.trail, trail.steps, known, agree), trail.steps

    def _read_weights(self, case: Case, seen: Transcript) -> Finding | None:
        """What the learner's own attention weights show, where the values can be exchanged."""
        probe = make_probe(case)
        if probe is None or seen.weights is None:
            return None
        return find_wrong_weight(run_case(probe, self.module), seen.weights)

    def _report(self, **fields: Any) -> GradingReport:
        return GradingReport(exercise=self.exercise.name, **fields)


def _find_subject(exercise: Exercise, source: str) -> str:
    """Which of the names returns nothing: the first function that has no return."""
    functions = [node for node in ast.walk(ast.parse(source)) if isinstance(node, ast.FunctionDef)]
    for function in functions:
        ends = any(isinstance(node, ast.Return) for node in ast.walk(function))
        if function.name in (*exercise.entry, "forward") and not ends:
            return function.name
    return exercise.entry[0]


def _format_shapes(case: Case) -> str:
    """What went in, as shapes: q (2, 3, 4), n_heads 2."""
    parts = []
    for name, value in case.inputs.items():
        if isinstance(value, Tensor | np.ndarray):
            parts.append(f"{name} ({', '.join(map(str, value.shape))})")
        elif isinstance(value, int | float | bool):
            parts.append(f"{name} {value}")
    return ", ".join(parts)
