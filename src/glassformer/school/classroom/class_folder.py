"""The folder of a class: its title, its parts, and the exercises that each part switches on.

class.toml
    format = "glassformer class"
    version = 1
    title = "Attention, autumn term"

    [[part]]
    title = "Week 1"
    opens = 2026-09-07              # a day; without one, the part is open from the start
    exercises = ["attention", "causal_mask"]
"""

import json
import re
import tomllib
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date, datetime, timedelta
from pathlib import Path
from typing import Any

from glassformer.errors import ConfigError
from glassformer.languages import Language
from glassformer.school.plans import read_plan
from glassformer.school.practice import Exercise, all_exercises
from glassformer.school.practice.exercise import UnknownExercise, find_exercise, read_exercise
from glassformer.storage import read_regular, write_atomically

FORMAT, VERSION = "glassformer class", 1
FILE, OWN, HAND_INS = "class.toml", "exercises", "hand-ins"
_OWN_FOLDER = re.compile(r"\d{3}_[a-z0-9_]+")
_LONGEST_TITLE = 200


@dataclass(frozen=True, slots=True)
class ClassPart:
    """A week, or any stretch of a class, with the exercises that it switches on."""

    title: str
    opens: date | None
    exercises: tuple[Exercise, ...]

    def is_open(self, today: date) -> bool:
        return self.opens is None or self.opens <= today


@dataclass(frozen=True, slots=True)
class ClassFolder:
    """A class as it lies in its folder."""

    folder: Path
    title: str
    parts: tuple[ClassPart, ...]
    own: tuple[Exercise, ...]  # the instructor's exercises, in a part or still a draft

    @property
    def hand_ins(self) -> Path:
        return self.folder / HAND_INS

    @property
    def exercises(self) -> tuple[Exercise, ...]:
        """All exercises of the class, open or not, in order."""
        return tuple(exercise for part in self.parts for exercise in part.exercises)

    def list_open(self, today: date) -> tuple[Exercise, ...]:
        """The exercises that are switched on."""
        open_parts = [part for part in self.parts if part.is_open(today)]
        return tuple(exercise for part in open_parts for exercise in part.exercises)

    def find_opening(self, name: str) -> date | None:
        """The day on which an exercise of the class is switched on; None: from the start."""
        return next(
            part.opens for part in self.parts if any(each.name == name for each in part.exercises)
        )


def create_class(
    folder: Path, *, title: str, plan: str, start: date, language: Language
) -> ClassFolder:
    """Write a class whose parts switch on the exercises of a course plan, from a day on."""
    if (folder / FILE).exists():
        raise ConfigError(f"A class must have a folder of its own; {folder} has a {FILE} already.")
    _check_title(title)
    course = read_plan(plan)
    lines = [
        f'format = "{FORMAT}"',
        f"version = {VERSION}",
        f"title = {json.dumps(title, ensure_ascii=False)}",
    ]
    for n, part in enumerate(course.parts):
        names = [step.name for step in part.steps if step.kind == "practice"]
        lines += [
            "",
            "[[part]]",
            f"title = {json.dumps(part.title[language.code], ensure_ascii=False)}",
            f"opens = {(start + timedelta(days=n * course.days)).isoformat()}",
            "exercises = [",
            *(f'  "{name}",' for name in names),
            "]",
        ]
    try:
        for path in (folder / OWN, folder / HAND_INS):
            path.mkdir(parents=True, exist_ok=True)
        write_atomically(folder / FILE, "\n".join(lines) + "\n")
    except OSError as error:
        raise ConfigError(f"The class could not be written: {error.filename}: {error}.") from None
    return read_class(folder)


def read_class(folder: Path) -> ClassFolder:
    """A class from its folder; whatever does not fit is refused in one sentence."""
    file = folder / FILE
    try:
        table = tomllib.loads(read_regular(file).decode("utf-8"))
    except (FileNotFoundError, NotADirectoryError):
        raise ConfigError(
            f"A class is a folder with a {FILE}; {folder} has none. "
            "Create one with: glassformer practice class create DIR"
        ) from None
    except OSError as error:
        raise ConfigError(f"{file} cannot be read: {error.strerror}.") from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError, RecursionError) as error:
        raise ConfigError(f"{file} must be TOML in UTF-8: {error}.") from None
    if table.get("format") != FORMAT or table.get("version") != VERSION:
        raise ConfigError(
            f'{file} must say format = "{FORMAT}" and version = {VERSION}; got '
            f"{table.get('format')!r} and {table.get('version')!r}. A class of a later version "
            "needs a newer glassformer."
        )
    title, plain_parts = table.get("title"), table.get("part", [])
    _check_title(title)
    if not isinstance(plain_parts, list) or not all(isinstance(p, dict) for p in plain_parts):
        raise ConfigError(f"{file}: each part must be a table [[part]].")
    own = _read_own(folder)
    known = (*all_exercises(), *own)
    parts = tuple(_read_part(file, plain, known) for plain in plain_parts)
    names = [exercise.name for part in parts for exercise in part.exercises]
    twice = sorted({name for name in names if names.count(name) > 1})
    if twice:
        raise ConfigError(f"{file} must name each exercise once; {', '.join(twice)} occurs again.")
    return ClassFolder(folder, str(title), parts, own)


def _check_title(title: Any) -> None:
    if not isinstance(title, str) or not title.isprintable() or not title.strip():
        raise ConfigError(f"The title of a class must be a line of text; got {title!r}.")
    if len(title) > _LONGEST_TITLE:
        raise ConfigError(
            f"The title of a class may have {_LONGEST_TITLE} characters; got {len(title)}."
        )


def _read_part(file: Path, plain: dict[str, Any], known: Sequence[Exercise]) -> ClassPart:
    title, opens, names = (plain.get(key) for key in ("title", "opens", "exercises"))
    _check_title(title)
    if unknown := sorted(set(plain) - {"title", "opens", "exercises"}):
        raise ConfigError(
            f"{file}: a part may hold title, opens and exercises; got {', '.join(unknown)}."
        )
    if opens is not None and (not isinstance(opens, date) or isinstance(opens, datetime)):
        raise ConfigError(f"{file}: opens must be a day such as 2026-09-07; got {opens!r}.")
    if not isinstance(names, list) or not all(isinstance(name, str) for name in names):
        raise ConfigError(f"{file}: exercises must be a list of names; got {names!r}.")
    return ClassPart(str(title), opens, tuple(_find(file, name, known) for name in names))


def _find(file: Path, name: str, known: Sequence[Exercise]) -> Exercise:
    try:
        return find_exercise(name, known)
    except UnknownExercise as error:
        hint = f" Did you mean {error.near[0]}?" if error.near else ""
        raise ConfigError(
            f"{file} names the exercise {name!r}, which does not exist.{hint}"
        ) from None


def _read_own(folder: Path) -> tuple[Exercise, ...]:
    """The instructor's exercises; a folder that is none is refused by its name."""
    place = folder / OWN
    if not place.is_dir():
        return ()
    shipped = {exercise.name for exercise in all_exercises()}
    found: list[Exercise] = []
    for path in sorted(each.resolve() for each in place.iterdir() if each.is_dir()):
        if path.name.startswith((".", "__")):
            continue
        if not _OWN_FOLDER.fullmatch(path.name):
            raise ConfigError(
                "An exercise of a class has a folder such as 501_name, with three digits; "
                f"got {path}."
            )
        try:
            exercise = read_exercise(path)
            for name in ("stub.py", "solution.py", "checks.py", "en.md", "zh.md"):
                (path / name).read_text("utf-8")
            exercise.faults()
        except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
            raise ConfigError(f"The exercise in {path} cannot be read: {error}.") from None
        if exercise.name in shipped or any(exercise.name == each.name for each in found):
            raise ConfigError(
                f"Exercises must have different names; {path} has that of another: {exercise.name}."
            )
        found.append(exercise)
    return tuple(found)
