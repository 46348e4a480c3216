"""The whole course for one learner: what is done, what is begun, and what to do next.

Chapters, exercises and questions each have a place of their own; this is where they meet.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import date
from typing import Literal

from glassformer.languages import Language
from glassformer.school.learn.blocks import Reference
from glassformer.school.learn.chapters import read_chapter
from glassformer.school.learn.listing import ListedChapter, list_chapters
from glassformer.school.learn.questions import read_questions
from glassformer.school.practice import all_exercises
from glassformer.school.progress import ProgressStore


@dataclass(frozen=True, slots=True)
class ChapterState:
    """A chapter with everything that belongs to it."""

    listed: ListedChapter
    exercises: tuple[str, ...]  # each with the first chapter that names it
    experiments: tuple[str, ...]
    passed: int  # of the exercises
    due: int  # of the questions

    @property
    def state(self) -> Literal["done", "started", "open"]:
        listed = self.listed
        counts = [
            (int(listed.read is not None), 1),
            (self.passed, len(self.exercises)),
            (listed.answered, listed.questions),
        ]
        if all(done == total for done, total in counts):
            return "done"
        return "started" if any(done for done, _ in counts) else "open"


@dataclass(frozen=True, slots=True)
class Step:
    """What to do next: read a chapter, write an exercise, answer questions."""

    kind: Literal["chapter", "exercise", "questions"]
    name: str | None  # of a chapter or an exercise; questions of a chapter, or of all that are due


@dataclass(frozen=True, slots=True)
class CourseState:
    """Every chapter, and the next step; None when everything is done."""

    chapters: tuple[ChapterState, ...]
    next: Step | None


def survey_course(
    learning: ProgressStore, practice: ProgressStore, language: Language, today: date
) -> CourseState:
    """The course as one learner has left it."""
    chapters = tuple(_survey_chapters(learning, practice, language, today))
    return CourseState(chapters, _find_step(chapters, practice))


def _survey_chapters(
    learning: ProgressStore, practice: ProgressStore, language: Language, today: date
) -> Iterator[ChapterState]:
    due = [
        question.topic
        for question in read_questions()
        if (card := learning.cards.get(question.name)) is not None and card.is_due(today)
    ]
    known = {exercise.name for exercise in all_exercises()}
    for listed in list_chapters(learning, language):
        named = list_references(listed.name, language)
        own = tuple(name for name in named["practice"] if name in known)
        known -= set(own)
        yield ChapterState(
            listed=listed,
            exercises=own,
            experiments=tuple(named["lab"]),
            passed=sum(name in practice.passed for name in own),
            due=due.count(listed.name),
        )


def list_references(chapter: str, language: Language) -> dict[str, list[str]]:
    """The exercises ("practice") and experiments ("lab") that a chapter names, each once."""
    found: dict[str, list[str]] = {"practice": [], "lab": []}
    for block in read_chapter(chapter, language).blocks:
        if isinstance(block, Reference) and block.kind in found:
            found[block.kind] += [name for name in block.names if name not in found[block.kind]]
    return found


def _find_step(chapters: tuple[ChapterState, ...], practice: ProgressStore) -> Step | None:
    """Questions that are due, then chapter by chapter: read it, write its exercises, answer."""
    if any(chapter.due for chapter in chapters):
        return Step("questions", None)
    for chapter in chapters:
        listed = chapter.listed
        if listed.read is None:
            return Step("chapter", listed.name)
        for name in chapter.exercises:
            if name not in practice.passed:
                return Step("exercise", name)
        if listed.answered < listed.questions:
            return Step("questions", listed.name)
    return None
