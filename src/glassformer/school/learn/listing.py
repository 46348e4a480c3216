"""The chapters in order, with what a learner has read and answered of each."""

from dataclasses import dataclass

from glassformer.languages import Language
from glassformer.school.learn.blocks import plain_text
from glassformer.school.learn.chapters import chapter_names, read_chapters
from glassformer.school.learn.questions import read_questions
from glassformer.school.progress import ProgressStore


@dataclass(frozen=True, slots=True)
class ListedChapter:
    """A chapter, and how far a learner has got with it."""

    number: int
    name: str
    title: str
    read: str | None  # the day
    questions: int
    answered: int


def list_chapters(progress: ProgressStore, language: Language) -> list[ListedChapter]:
    """Every chapter, in order."""
    found = []
    for chapter in read_chapters(language):
        asked = [question.name for question in read_questions() if question.topic == chapter.name]
        found.append(
            ListedChapter(
                number=chapter.number,
                name=chapter.name,
                title=plain_text(chapter.title),
                read=progress.read.get(chapter.name),
                questions=len(asked),
                answered=sum(name in progress.cards for name in asked),
            )
        )
    return found


def find_next(progress: ProgressStore, name: str | None = None) -> str | None:
    """The chapter after this one, or the first that was not read yet."""
    names = chapter_names()
    if name in names:
        return next(iter(names[names.index(name) + 1 :]), None)
    return next((each for each in names if each not in progress.read), None)
