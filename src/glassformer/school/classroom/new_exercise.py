"""A new exercise for a class: a small one that works, to be rewritten file by file."""

import keyword
import re
import shutil
from pathlib import Path

from glassformer.errors import ConfigError
from glassformer.school.classroom.class_folder import OWN, ClassFolder
from glassformer.school.practice import Exercise, all_exercises
from glassformer.school.practice.exercise import EXERCISES, read_exercise

_TEMPLATE = EXERCISES / "template"
_PLACEHOLDER = "exercise_name"
_FIRST_NUMBER = 501  # below are the exercises that ship


def create_exercise(classroom: ClassFolder, name: str) -> Exercise:
    """Write the files of a working example under a name of the instructor's."""
    if not re.fullmatch(r"[a-z][a-z0-9_]*", name) or keyword.iskeyword(name):
        raise ConfigError(
            "The name of an exercise becomes the name of a function: lower-case letters, digits "
            f"and underscores, such as masked_mean; got {name!r}."
        )
    if any(name == each.name for each in (*all_exercises(), *classroom.own)):
        raise ConfigError(f"There is an exercise {name} already. Choose another name.")
    number = max((each.number for each in classroom.own), default=_FIRST_NUMBER - 1) + 1
    folder = classroom.folder / OWN / f"{number}_{name}"
    try:
        folder.mkdir(parents=True)
        for file in sorted(_TEMPLATE.iterdir()):
            if file.is_file():
                text = file.read_text("utf-8").replace(_PLACEHOLDER, name)
                (folder / file.name).write_text(text, "utf-8")
    except OSError as error:
        shutil.rmtree(folder, ignore_errors=True)
        raise ConfigError(f"{folder} could not be written: {error.strerror}.") from None
    return read_exercise(Path(folder).resolve())
