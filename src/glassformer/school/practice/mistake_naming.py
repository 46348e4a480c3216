"""What is the mistake? Known faults first, then what can be worked out, the surest first."""

from collections.abc import Callable, Sequence

from glassformer.school.practice.cases import Case, are_same_result
from glassformer.school.practice.derived_faults import DerivedSearch, Load, NamedMistake
from glassformer.school.practice.drawing_faults import find_wrong_arrow
from glassformer.school.practice.error_causes import explain_error
from glassformer.school.practice.exercise import Exercise
from glassformer.school.practice.fault_naming import find_faults
from glassformer.school.practice.outcome import Outcome, outcomes_agree
from glassformer.school.practice.parameter_relations import find_other_parameters
from glassformer.school.practice.report import Finding
from glassformer.school.practice.result_relations import find_relation

# Told before any mistake is looked for in the code: the numbers are right.
_FORMS = {
    f"practice.relation.{name}"
    for name in (
        "toomany",
        "only",
        "container",
        "order",
        "kind",
        "dtype",
        "permuted",
        "reshaped",
        "endmissing",
        "startmissing",
        "endextra",
        "startextra",
        "unchanged",
    )
}
# Told only if nothing else is found: they say where, and hardly why.
_PLACES = {f"practice.relation.{name}" for name in ("places", "scattered", "diagonal", "emptyrows")}
# All that may be said of an answer that is filled in by hand.
_OPEN = {f"practice.relation.{name}" for name in ("mixed", "reversed", "negated")}


def name_mistake(
    exercise: Exercise,
    cases: Sequence[Case],
    expected: Sequence[Outcome],
    got: Sequence[Outcome],
    load: Load,
    start_repair: Callable[[], Callable[[], NamedMistake | None]],
) -> NamedMistake | None:
    """The mistake that explains every case, if one can be named.

    `start_repair` begins to look for a small change of the learner's file after which every case
    holds, and returns what waits for it.
    """
    solution, known = exercise.solution, exercise.faults()
    if faults := find_faults(cases, expected, got, known, load, solution):
        # The lines of a drawing are no lines of code: its function is pointed at.
        source = None if exercise.kind == "drawing" else faults[0].source
        return NamedMistake(faults, (), source, faults[0].look)
    wrong = [i for i, each in enumerate(got) if not outcomes_agree(cases[i], expected[i], each)]
    if exercise.kind == "drawing":
        found = find_wrong_arrow(cases[wrong[0]], expected[wrong[0]], got[wrong[0]])
        return None if found is None else _tell(found)
    if exercise.hides_numbers:  # few rounded numbers are alike by chance
        found = find_relation(cases, expected, got, wrong[:1])
        return _tell(found) if found is not None and found.key in _OPEN else None
    first, repair = got[wrong[0]], start_repair()
    if first.failure == "raised":
        cause = explain_error(first.error, first.message, cases[wrong[0]].inputs)
        return repair() or (None if cause is None else _tell(cause))
    if (missing := find_other_parameters(cases[wrong[0]], expected[wrong[0]], first)) is not None:
        return _tell(missing)
    relation = find_relation(cases, expected, got, wrong)
    if relation is None:
        # Of one result among several: the others are wrong because of it, or as well.
        same = [i for i in wrong if are_same_result(cases[i], cases[wrong[0]])]
        same = same if len(same) > 1 else []
        relation = find_relation(cases, expected, got, same) if len(same) < len(wrong) else None
    if relation is not None and relation.key in _FORMS:
        return _tell(relation)
    if exercise.kit is not None:  # a whole model decides, not the solution of one part
        return None if relation is None else _tell(relation)
    search = DerivedSearch(cases, expected, got, known, load, solution)
    if (one := search.find_one()) is not None:
        return one
    if relation is not None and relation.key not in _PLACES:
        return _tell(relation)
    if (repaired := repair()) is not None:
        return repaired
    if (two := search.find_two()) is not None:
        return two
    return None if relation is None else _tell(relation)


def _tell(finding: Finding) -> NamedMistake:
    return NamedMistake((), (finding,), None)
