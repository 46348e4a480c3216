"""The map: chapters in order with what is done, begun and next, all exercises and experiments."""

from datetime import date
from typing import Any

from glassformer.languages import Language
from glassformer.school.lab import SECONDS, ExperimentTexts
from glassformer.school.learn.blocks import plain_text
from glassformer.school.learn.chapters import read_chapter
from glassformer.school.overview import ChapterState, Step, survey_course
from glassformer.school.practice import Exercise, all_exercises, find_exercise
from glassformer.school.practice.report_texts import kind_label
from glassformer.school.progress import ProgressStore
from glassformer.workbench.jobs import Progress
from glassformer.workbench.memory import Memory
from glassformer.workbench.rooms.learn.records import (
    list_notices,
    open_learning,
    open_practice,
    practice_folder,
)
from glassformer.workbench.wire.learn import CourseRequest


def describe_course(asked: CourseRequest, _memory: Memory, _progress: Progress) -> dict[str, Any]:
    """The whole course, as the learner has left it."""
    language = Language(asked.lang)
    learning, practice = open_learning(language), open_practice(language)
    course = survey_course(learning, practice, language, date.today())
    return {
        "chapters": [_describe_chapter(each) for each in course.chapters],
        "exercises": [describe_exercise(each, practice, language) for each in all_exercises()],
        "experiments": [_describe_experiment(name, language) for name in SECONDS],
        "next": None if course.next is None else _describe_step(course.next, language),
        "folder": str(practice_folder()),
        "notices": list_notices(learning, practice, language),
    }


def describe_exercise(
    exercise: Exercise, practice: ProgressStore, language: Language
) -> dict[str, Any]:
    """An exercise in the list."""
    return {
        "number": exercise.number,
        "name": exercise.name,
        "title": exercise.brief(language.code).title,
        "kind": kind_label(exercise, language),
        "minutes": exercise.minutes,
        "difficulty": exercise.difficulty,
        "is_passed": exercise.name in practice.passed,
    }


def _describe_chapter(chapter: ChapterState) -> dict[str, Any]:
    listed = chapter.listed
    return {
        "number": listed.number,
        "name": listed.name,
        "title": listed.title,
        "read": listed.read,
        "state": chapter.state,
        "exercises": list(chapter.exercises),
        "experiments": list(chapter.experiments),
        "passed": chapter.passed,
        "questions": listed.questions,
        "answered": listed.answered,
        "due": chapter.due,
    }


def _describe_experiment(name: str, language: Language) -> dict[str, Any]:
    texts = ExperimentTexts(name, language)
    return {
        "name": name,
        "title": texts.title,
        "claim": texts.claim,
        "seconds": dict(SECONDS[name]),
    }


def _describe_step(step: Step, language: Language) -> dict[str, Any]:
    title = ""
    if step.name is not None:
        title = (
            find_exercise(step.name).brief(language.code).title
            if step.kind == "exercise"
            else plain_text(read_chapter(step.name, language).title)
        )
    return {"kind": step.kind, "name": step.name, "title": title}
