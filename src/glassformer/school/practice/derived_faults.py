"""Mistakes that nobody wrote down: worked out from a solution, and tried like known ones."""

import signal
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import cache
from itertools import combinations
from types import FrameType

from glassformer.school.practice.attention_faults import derive_attention_faults
from glassformer.school.practice.cases import Case
from glassformer.school.practice.exercise import Fault
from glassformer.school.practice.general_faults import derive_general_faults
from glassformer.school.practice.name_faults import derive_wrong_layers
from glassformer.school.practice.outcome import (
    Outcome,
    is_same_mistake,
    is_telling,
    outcomes_agree,
)
from glassformer.school.practice.report import Finding
from glassformer.school.practice.solution_edits import (
    DerivedFault,
    Edit,
    SolutionTree,
    apply_edits,
    find_edit,
)
from glassformer.school.practice.value_faults import CHANGED_VALUES

Load = Callable[[str], Callable[[int], Outcome]]
# Processor time before looking for a name is given up.
_SECONDS_FOR_ONE, _SECONDS_FOR_TWO = 4.0, 2.0


@dataclass(frozen=True, slots=True)
class NamedMistake:
    """What explains a result: known faults, sentences, and a source that does the same."""

    faults: tuple[Fault, ...]
    findings: tuple[Finding, ...]
    source: str | None  # None if it was read off the results
    look: str | None = None
    line: int | None = None  # of the learner's file, if it is known


class DerivedSearch:
    """Looks for the derived mistakes that do in every case what a learner's code did."""

    def __init__(
        self,
        cases: Sequence[Case],
        expected: Sequence[Outcome],
        got: Sequence[Outcome],
        known: Sequence[Fault],
        load: Load,
        solution: str,
    ) -> None:
        self._matcher = _Matcher(cases, expected, got, cache(load))
        self._known, self._solution = known, solution
        self._tree = SolutionTree(solution)

    def find_one(self) -> NamedMistake | None:
        """A single mistake."""
        if not self._matcher.has_values:
            return None
        found: list[NamedMistake] = []
        with _limit_time(_SECONDS_FOR_ONE) as is_up, suppress(is_up):
            faults = list(self._derive())
            for fault in faults:
                source = self._explaining_source(fault)
                if source is None or (self._matcher.is_telling and self._has_rival(fault, faults)):
                    continue
                found.append(NamedMistake((), (fault.finding,), source, fault.look))
                if self._matcher.is_telling:
                    break
        # Where all that is wrong is NaN, several mistakes look alike: then none of them is named.
        is_sure = found and all(each.findings == found[0].findings for each in found)
        return found[0] if is_sure else None

    def _explaining_source(self, fault: DerivedFault) -> str | None:
        source = apply_edits(self._solution, fault.edits)
        return source if source is not None and self._matcher.explains(source) else None

    def _has_rival(self, fault: DerivedFault, faults: Sequence[DerivedFault]) -> bool:
        """Whether another change of the same values does the same: then neither is the mistake.

        Where all rows must only be equal, the first row would do as well as the last one.
        """
        if not fault.finding.key.startswith(CHANGED_VALUES):
            return False
        return any(
            other.finding.key.startswith(CHANGED_VALUES)
            and other.finding != fault.finding
            and _places(other) == _places(fault)
            and self._explaining_source(other) is not None
            for other in faults
        )

    def find_two(self) -> NamedMistake | None:
        """Two at once, of those that are common or known."""
        if not self._matcher.is_telling:
            return None
        with _limit_time(_SECONDS_FOR_TWO) as is_up, suppress(is_up):
            for one, other in combinations(self._choices(), 2):
                source = apply_edits(self._solution, (*one.edits, *other.edits))
                if source is not None and self._matcher.explains(source):
                    pair = (one, other)
                    faults = tuple(each.fault for each in pair if each.fault is not None)
                    findings = tuple(each.finding for each in pair if each.finding is not None)
                    return NamedMistake(faults, findings, source, one.look or other.look)
        return None

    def _derive(self) -> Iterator[DerivedFault]:
        yield from derive_wrong_layers(self._tree)
        yield from derive_attention_faults(self._tree)
        yield from derive_general_faults(self._tree)

    def _choices(self) -> list["_Choice"]:
        known = [
            _Choice((find_edit(self._solution, fault.source),), fault=fault, look=fault.look)
            for fault in self._known
        ]
        derived = [*derive_attention_faults(self._tree), *derive_wrong_layers(self._tree)]
        return known + [
            _Choice(each.edits, finding=each.finding, look=each.look) for each in derived
        ]


def _places(fault: DerivedFault) -> list[tuple[int, int]]:
    return [(edit.start, edit.end) for edit in fault.edits]


@dataclass(frozen=True, slots=True)
class _Choice:
    """A mistake that may be one of two."""

    edits: tuple[Edit, ...]
    fault: Fault | None = None
    finding: Finding | None = None
    look: str | None = None


class _Matcher:
    """Compares a source with what a learner's code did, the telling cases first."""

    def __init__(
        self,
        cases: Sequence[Case],
        expected: Sequence[Outcome],
        got: Sequence[Outcome],
        load: Load,
    ) -> None:
        self._cases, self._got, self._load = cases, got, load
        wrong = [i for i, each in enumerate(got) if not outcomes_agree(cases[i], expected[i], each)]
        # In order, for cheap cases come first; parameters are alike in most mistakes.
        order = [i for i in range(len(got)) if cases[i].name != "parameters"]
        self._order = order + [i for i in range(len(got)) if i not in order]
        # An error or a NaN alone tells little: many mistakes have the same.
        self.has_values = any(got[i].value is not None for i in wrong)
        self.is_telling = any(is_telling(cases[i], expected[i], got[i]) for i in wrong)

    def explains(self, source: str) -> bool:
        outcome = self._load(source)
        return all(self._agrees(i, outcome(i)) for i in self._order)

    def _agrees(self, number: int, outcome: Outcome) -> bool:
        return is_same_mistake(self._cases[number], outcome, self._got[number])


@contextmanager
def _limit_time(seconds: float) -> Iterator[type[BaseException]]:
    """Ends what runs within by an exception of its own once so much processor time is used."""

    class TimeIsUp(BaseException):
        """No Exception, so that no case takes it for an error of the code it runs."""

    def stop(_signal: int, _frame: FrameType | None) -> None:
        raise TimeIsUp

    before = signal.signal(signal.SIGPROF, stop)
    signal.setitimer(signal.ITIMER_PROF, seconds)
    try:
        yield TimeIsUp
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
        signal.signal(signal.SIGPROF, before)
