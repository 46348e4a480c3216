"""A capstone run in a reader's language."""

from collections.abc import Iterator
from typing import Any

from glassformer.languages import Language
from glassformer.school.practice.capstone.capstone_report import (
    LENT,
    WRONG,
    YOURS,
    CapstoneReport,
    PartResult,
    Writing,
)
from glassformer.school.practice.capstone.parts import DECODER, TRANSLATOR
from glassformer.school.practice.exercise import find_exercise
from glassformer.school.practice.report_texts import describe_report
from glassformer.school.practice.workspace import Workspace

_STATES = {
    YOURS: "practice.capstone.yours",
    LENT: "practice.capstone.lent",
    WRONG: "practice.capstone.wrong",
}
_TITLES = {
    TRANSLATOR: "practice.capstone.title.translator",
    DECODER: "practice.capstone.title.decoder",
}


def describe_title(report: CapstoneReport, language: Language) -> str:
    values = {"total": len(report.parts), "model": report.model}
    return language.say(_TITLES[report.track.name], **values)


def describe_state(part: PartResult, language: Language) -> str:
    return language.say(_STATES[part.state])


def describe_counts(report: CapstoneReport, language: Language) -> str:
    counts = {state: len(report.select(state)) for state in (YOURS, LENT, WRONG)}
    return language.say("practice.capstone.count", **counts)


def describe_mistake(part: PartResult, language: Language) -> tuple[list[str], str]:
    """What is wrong with a part, and the line to look at: the mistake, and what differs first."""
    if part.state != WRONG or part.report is None:
        return [], ""
    report, exercise = part.report, find_exercise(part.part)
    description = describe_report(report, exercise, language)
    sentences = list(description.sentences)
    if report.finding is not None:
        first = language.say(report.finding.key, **report.finding.values).rstrip(": ")
        sentences += [] if first in sentences else [first]
    if description.seen:
        sentences.append(description.seen)
    return sentences, description.where


def describe_outcome(report: CapstoneReport, language: Language) -> Iterator[str]:
    """How the joined model's text compares with the library's."""
    say = language.say
    if report.select(WRONG):
        yield say("practice.capstone.lends")
    if report.is_equal:
        yield say("practice.capstone.equal", n=len(report.library.tokens))
    elif report.joined is not None:
        place = find_first_difference(report.joined.tokens, report.library.tokens)
        yield say("practice.capstone.differs", text=in_one_line(report.library), n=place + 1)
    else:
        why = "" if report.stop is None else say(report.stop.key, **report.stop.values)
        yield say("practice.capstone.stopped", why=why)
    if report.with_wrong is not None and report.with_wrong.tokens == report.library.tokens:
        yield say("practice.capstone.inplace.same")
    elif report.with_wrong is not None:
        yield say("practice.capstone.inplace", text=in_one_line(report.with_wrong))


def in_one_line(writing: Writing) -> str:
    """A text without line breaks; a dash where there is none.

    >>> in_one_line(Writing("the\\nsea", ())), in_one_line(Writing("", ()))
    ('the sea', '–')
    """
    return " ".join(writing.text.split()) or "–"


def find_first_difference(one: tuple[int, ...], other: tuple[int, ...]) -> int:
    """The first place at which two texts are not the same.

    >>> find_first_difference((4, 5), (4, 5, 6))
    2
    """
    both = zip(one, other, strict=False)
    return next((i for i, (a, b) in enumerate(both) if a != b), min(len(one), len(other)))


def describe_next(report: CapstoneReport, workspace: Workspace, language: Language) -> str:
    """What to do after this run."""
    say, options = language.say, workspace.options
    if wrong := report.select(WRONG):
        command = f"glassformer practice {wrong[0]}{options}"
        return say("practice.capstone.next.repair", name=wrong[0], command=command)
    if lent := report.select(LENT):
        command = f"glassformer practice {lent[0]}{options}"
        return say("practice.capstone.next.write", name=lent[0], command=command)
    if report.track.name == TRANSLATOR:
        command = f"glassformer practice capstone --path decoder{options}"
        return say("practice.capstone.next.decoder", command=command)
    if report.model == "writer":
        command = f"glassformer practice capstone --path decoder --checkpoint SmolLM2-135M{options}"
        return say("practice.capstone.next.checkpoint", command=command)
    return say("practice.capstone.next.done", model=report.model)


def as_json(report: CapstoneReport, workspace: Workspace, language: Language) -> dict[str, Any]:
    """A run for programs, with the sentences that a person would read."""
    return {
        "path": report.track.name,
        "text": report.text,
        "model": report.model,
        "parts": [_describe_part(part, language) for part in report.parts],
        "library": _as_data(report.library),
        "joined": _as_data(report.joined),
        "equal": report.is_equal,
        "complete": report.is_complete,
        "with_wrong_parts": _as_data(report.with_wrong),
        "sentences": list(describe_outcome(report, language)),
        "next": describe_next(report, workspace, language),
        "isolation": list(report.isolation),
        "seconds": report.seconds,
    }


def _as_data(writing: Writing | None) -> dict[str, Any] | None:
    if writing is None:
        return None
    return {"text": writing.text, "tokens": list(writing.tokens)}


def _describe_part(part: PartResult, language: Language) -> dict[str, Any]:
    exercise = find_exercise(part.part)
    sentences, where = describe_mistake(part, language)
    return {
        "part": part.part,
        "number": exercise.number,
        "file": exercise.file_name,
        "title": exercise.brief(language.code).title,
        "state": part.state,
        "kind": None if part.report is None else part.report.kind,
        "faults": [] if part.report is None else list(part.report.faults),
        "line": None if part.report is None else part.report.line,
        "sentences": sentences,
        "where": where,
    }
