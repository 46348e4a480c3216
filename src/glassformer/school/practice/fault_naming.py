"""Which known mistake is it? The one that does the same in every case; and the line it is in."""

import ast
import io
import re
import tokenize
from collections.abc import Callable, Collection, Sequence
from difflib import SequenceMatcher
from functools import cache
from itertools import combinations, pairwise

from glassformer.school.practice.cases import Case
from glassformer.school.practice.exercise import Fault
from glassformer.school.practice.outcome import (
    Outcome,
    is_comparable,
    is_same_mistake,
    outcomes_agree,
)

_LEAST_LIKENESS = 0.4
# A source becomes a function from the number of a case to its outcome.
Load = Callable[[str], Callable[[int], Outcome]]


def find_faults(
    cases: Sequence[Case],
    expected: Sequence[Outcome],
    got: Sequence[Outcome],
    faults: Sequence[Fault],
    load: Load,
    solution: str,
) -> tuple[Fault, ...]:
    """The faults that explain what a learner's code did: one, or two at once, or none.

    `got` may be shorter than `cases`: what was not reached is not compared.
    """
    load = cache(load)

    def explains(source: str, n_cases: int) -> bool:
        # In order: cheap cases come first, and there most faults drop out.
        outcome = load(source)
        return all(is_same_mistake(cases[i], outcome(i), got[i]) for i in range(n_cases))

    for fault in faults:
        if explains(fault.source, len(got)):
            return (fault,)
    for one, other in combinations(faults, 2):
        both = merge_edits(solution, one.source, other.source)
        if both is not None and explains(both, len(got)):
            return (one, other)
    return tuple(
        fault for fault in faults if _explains_beside(cases, expected, got, load(fault.source))
    )[:1]


def _explains_beside(
    cases: Sequence[Case],
    expected: Sequence[Outcome],
    got: Sequence[Outcome],
    outcome: Callable[[int], Outcome],
) -> bool:
    """Whether a fault explains all but what another mistake beside it has broken altogether.

    What is broken is an error, or a result of another shape. What can be compared must be alike,
    and wrong in two cases at least: in a single one, numbers may be alike by chance. What is filled
    in by hand is wrong one blank at a time.
    """
    n_explained = 0
    for i, mine in enumerate(got):
        if is_same_mistake(cases[i], outcome(i), mine):
            n_explained += not outcomes_agree(cases[i], expected[i], mine)
        elif n_explained == 0 or is_comparable(expected[i], mine):
            return False
    return n_explained > (0 if cases[0].loose else 1)


def merge_edits(solution: str, one: str, other: str) -> str | None:
    """A source with the edits of two, if they touch different lines."""
    lines = solution.splitlines(keepends=True)
    edits = []
    for source in (one, other):
        theirs = source.splitlines(keepends=True)
        for tag, i1, i2, j1, j2 in SequenceMatcher(None, lines, theirs, False).get_opcodes():
            if tag != "equal":
                edits.append((i1, i2, theirs[j1:j2]))
    edits.sort(key=lambda edit: edit[:2])
    if any(end > start for (_, end, _), (start, _, _) in pairwise(edits)):
        return None
    for start, end, replaced in reversed(edits):
        lines[start:end] = replaced
    return "".join(lines)


def find_fault_line(
    fault: Fault,
    solution: str,
    learner: str,
    entry: Sequence[str],
    within: Collection[int] | None = None,
) -> int | None:
    """The learner's line that looks most like the mistake, within the function that went wrong.

    The line most like those in which fault and solution differ, among those in which the author's
    pattern is found, if there are any; where none is like them, the beginning of the function, or
    nothing if the lines are given.
    """
    code = code_lines(learner)
    if within is not None:
        code = {number: text for number, text in code.items() if number in within}
    look = fault.look or None
    hits = {n: text for n, text in code.items() if look is not None and re.search(look, text)}
    wrong = _changed_lines(solution, fault.source)
    scored = [
        (SequenceMatcher(None, _strip_spaces(text), _strip_spaces(line)).ratio(), -number)
        for number, text in (hits or code).items()
        for line in wrong
    ]
    likeness, number = max(scored, default=(0.0, 0))
    if hits or likeness >= _LEAST_LIKENESS:
        return -number
    return find_definition(learner, entry) if within is None else None


def find_function_lines(source: str, defined: int) -> range | None:
    """The lines of the function, or the class of the method, that begins at a line."""
    for node in ast.walk(ast.parse(source)):
        owner = isinstance(node, ast.ClassDef) and any(
            isinstance(part, ast.FunctionDef) and part.lineno == defined for part in node.body
        )
        function = isinstance(node, ast.FunctionDef) and node.lineno == defined
        if (owner or function) and isinstance(node, ast.FunctionDef | ast.ClassDef):
            return range(node.lineno + 1, (node.end_lineno or node.lineno) + 1)
    return None


def find_definition(source: str, entry: Sequence[str]) -> int | None:
    """The line in which the first of some names is defined."""
    try:
        tree = ast.parse(source)
    except SyntaxError:
        return None
    for node in ast.walk(tree):
        match node:
            case ast.FunctionDef(name=name, lineno=line) | ast.ClassDef(name=name, lineno=line):
                if name in entry:
                    return line
            case ast.Assign(targets=[ast.Name(id=name)], lineno=line):
                if name in entry:
                    return line
    return None


def code_lines(source: str) -> dict[int, str]:
    """The lines of a source by number, without comments and docstrings."""
    lines = source.splitlines()
    kept: dict[int, str] = {}
    skipped = (tokenize.COMMENT, tokenize.NL, tokenize.NEWLINE, tokenize.INDENT, tokenize.DEDENT)
    try:
        tokens = list(tokenize.generate_tokens(io.StringIO(source).readline))
    except (tokenize.TokenError, SyntaxError):
        return dict(enumerate(lines, start=1))
    for token in tokens:
        if token.type in skipped or (token.type == tokenize.STRING and "\n" in token.string):
            continue
        row, column = token.start
        if row <= len(lines):
            text = lines[row - 1]
            if column == len(text) - len(text.lstrip()) and token.type == tokenize.STRING:
                continue  # a docstring of one line
            kept[row] = text
    return kept


def _changed_lines(solution: str, faulty: str) -> list[str]:
    ours, theirs = solution.splitlines(), faulty.splitlines()
    lines: list[str] = []
    for tag, i1, i2, j1, j2 in SequenceMatcher(None, ours, theirs, False).get_opcodes():
        if tag != "equal":
            lines += theirs[j1:j2] or ours[i1:i2]
    return [line for line in lines if line.strip()]


def _strip_spaces(line: str) -> str:
    return re.sub(r"\s+", "", line.split("#", 1)[0])
