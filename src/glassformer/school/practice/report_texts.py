"""A report in a reader's language: which sentence, which line, seen where."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from glassformer.languages import Language
from glassformer.school.practice.exercise import Exercise, UnknownExercise
from glassformer.school.practice.report import CheckResult, GradingReport

_CASES = {
    "values": "practice.case.values",
    "strided": "practice.case.strided",
    "gradient": "practice.case.gradient",
    "float32": "practice.case.single",
    "bfloat16": "practice.case.half",
    "batch": "practice.case.batch",
    "parameters": "practice.case.parameters",
    "lengths": "practice.case.lengths",
    "future": "practice.case.future",
    "padding": "practice.case.padding",
    "masked": "practice.case.masked",
    "large": "practice.case.large",
    "numbers": "practice.case.numbers",
    "shapes": "practice.case.shapes",
    "predict": "practice.case.predict",
    "example": "practice.case.example",
    "dropout": "practice.case.dropout",
    "error": "practice.case.error",
    "heads": "practice.case.heads",
    "activations": "practice.case.activations",
    "causal": "practice.case.causal",
    "whole": "practice.case.whole",
}
_KINDS = {
    "code": "practice.kind.code",
    "numbers": "practice.kind.numbers",
    "shapes": "practice.kind.shapes",
    "fault": "practice.kind.fault",
    "predict": "practice.kind.predict",
    "drawing": "practice.kind.drawing",
}


@dataclass(frozen=True, kw_only=True, slots=True)
class Description:
    """What there is to say about a file that did not pass."""

    sentences: tuple[str, ...]  # the mistake by its name, or what was found
    where: str  # the line to look at; may be empty
    seen: str  # in which case, with which shapes; may be empty


def describe_report(report: GradingReport, exercise: Exercise, language: Language) -> Description:
    """A report that did not pass, in words."""
    say = language.say
    faults = {fault.name: fault for fault in exercise.faults()}
    sentences = []
    if report.faults and report.names_faults:
        sentences += [faults[name].sentence(language.code) for name in report.faults]
    sentences += [say(each.key, **each.values) for each in report.explained]
    if len(sentences) > 1:
        sentences.insert(0, say("practice.found.two"))
    if not sentences and report.finding is not None:
        # An error may have nothing to say after its name.
        sentences.append(say(report.finding.key, **report.finding.values).rstrip(": "))
    if report.detail is not None:
        sentences.append(say(report.detail.key, **report.detail.values))
    where = ""
    if report.line is not None:
        where = say("practice.line", file=exercise.file_name, line=report.line)
    return Description(
        sentences=tuple(sentences), where=where, seen=_describe_case(report, exercise, language)
    )


def _describe_case(report: GradingReport, exercise: Exercise, language: Language) -> str:
    if report.case is None or report.kind in ("empty", "nothing", "missing", "choice"):
        return ""
    case = case_label(report.case, exercise, language)
    if not report.given:
        return language.say("practice.seen", case=case)
    return language.say("practice.seen.given", case=case, given=report.given)


def case_label(name: str, exercise: Exercise, language: Language) -> str:
    """What a case is called."""
    if name in exercise.cases:
        return exercise.cases[name][language.code]
    return language.say(_CASES[name])


def case_names(exercise: Exercise) -> set[str]:
    """Every case name that has a sentence."""
    return set(_CASES) | set(exercise.cases)


def kind_label(exercise: Exercise, language: Language) -> str:
    """What kind of exercise it is."""
    return language.say(_KINDS[exercise.kind])


def checklist(
    report: GradingReport, exercise: Exercise, language: Language
) -> list[tuple[str, bool | None]]:
    """Each case once, in order, and whether it held: a mark and a label."""
    merged: dict[str, bool | None] = {}
    for checked in report.checked:
        merged[checked.name] = _combine(merged, checked)
    return [(case_label(name, exercise, language), held) for name, held in merged.items()]


def _combine(merged: Mapping[str, bool | None], checked: CheckResult) -> bool | None:
    before = merged.get(checked.name, True)
    if before is False or checked.held is False:
        return False
    return None if before is None or checked.held is None else True


def as_json(report: GradingReport, exercise: Exercise, language: Language) -> dict[str, Any]:
    """A report for programs, with the sentences that a person would read."""
    description = describe_report(report, exercise, language)
    return {
        **report.as_data(),
        "sentences": [] if report.passed else list(description.sentences),
        "where": description.where,
        "seen": description.seen,
        "file": exercise.file_name,
    }


def describe_unknown(error: UnknownExercise, language: Language) -> str:
    """That there is no such exercise, and which may be meant."""
    if error.near:
        return language.say("practice.error.name.near", name=error.name, near=error.near[0])
    return language.say("practice.error.name", name=error.name)
