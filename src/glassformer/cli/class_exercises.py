"""The option --class of `glassformer practice`: the exercises that a class has switched on."""

from collections.abc import Sequence
from datetime import date
from pathlib import Path
from typing import TYPE_CHECKING

from glassformer.errors import ConfigError
from glassformer.languages import Language

if TYPE_CHECKING:
    from glassformer.school.classroom.class_folder import ClassFolder
    from glassformer.school.practice import Exercise


def open_class(folder: Path) -> "ClassFolder":
    """The class in a folder."""
    from glassformer.school.classroom.class_folder import read_class

    return read_class(folder)


def list_exercises(class_folder: Path | None, language: Language) -> "Sequence[Exercise]":
    """Every exercise, or, in a class, those that are open today."""
    if class_folder is None:
        from glassformer.school.practice import all_exercises

        return all_exercises()
    classroom = open_class(class_folder)
    found = classroom.list_open(date.today())
    if not found:
        days = [part.opens for part in classroom.parts if part.opens is not None and part.exercises]
        key = "classroom.error.early" if days else "classroom.error.empty"
        values = (
            {"title": classroom.title, "day": min(days)} if days else {"title": classroom.title}
        )
        raise ConfigError(language.say(key, **values))
    return found


def find_class_exercise(
    name: str,
    exercises: "Sequence[Exercise]",
    language: Language,
    class_folder: Path | None = None,
) -> "Exercise":
    """The exercise of a name; one that a class has not switched on is refused with the day."""
    from glassformer.school.practice.exercise import UnknownExercise, find_exercise
    from glassformer.school.practice.report_texts import describe_unknown

    try:
        return find_exercise(name, exercises)
    except UnknownExercise as error:
        if class_folder is not None:
            _explain_closed(name, open_class(class_folder), language)
        raise ConfigError(describe_unknown(error, language)) from None


def _explain_closed(name: str, classroom: "ClassFolder", language: Language) -> None:
    """Refuse an exercise that exists and is not open; other names are left to the caller."""
    from glassformer.school.practice import all_exercises
    from glassformer.school.practice.exercise import UnknownExercise, find_exercise

    try:
        found = find_exercise(name, (*all_exercises(), *classroom.own))
    except UnknownExercise:
        return
    values = {"name": found.name, "title": classroom.title}
    if all(found.name != each.name for each in classroom.exercises):
        raise ConfigError(language.say("classroom.error.outside", **values)) from None
    day = classroom.find_opening(found.name)
    raise ConfigError(language.say("classroom.error.closed", **values, day=day)) from None
