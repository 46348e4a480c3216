"""What a learner hands in: one JSON file with the sources, and what was graded of them.

A hash over the content reveals a file that was changed by accident: an editor, a mail program, half
a download. It is no signature: whoever wants to deceive can write a right hash. Only grading the
sources again (`class_overview`) says whether they pass, and nothing here says who wrote them.
"""

import hashlib
import json
import secrets
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from datetime import UTC, date, datetime
from pathlib import Path
from typing import Any

import glassformer
from glassformer.errors import ConfigError, DataError
from glassformer.school.practice import Exercise
from glassformer.school.practice.grading import Grader
from glassformer.school.practice.workspace import Workspace
from glassformer.school.progress import ProgressStore
from glassformer.storage import atomic_file, open_regular

FORMAT, VERSION = "glassformer hand-in", 1
_MARK = f'"format": "{FORMAT}"'.encode()
_MOST_BYTES, _MOST_SOURCE, _MOST_EXERCISES = 16 << 20, 1 << 20, 1000
_LONGEST_NAME = 80


class UnusableHandIn(DataError):
    """A file that is no hand-in: a key of the catalogues and what to fill in."""

    def __init__(self, key: str, **values: object) -> None:
        super().__init__(f"{key}: {values}")
        self.key, self.values = key, values


@dataclass(frozen=True, kw_only=True, slots=True)
class HandedExercise:
    """One exercise that was tried."""

    name: str
    version: str  # a hash of the exercise that it was graded with
    passed: bool
    day: str | None  # on which it first passed
    hints: int
    mistakes: tuple[str, ...]  # that were named on the way
    source: str


@dataclass(frozen=True, kw_only=True, slots=True)
class HandIn:
    """One learner's file."""

    name: str
    learner: str  # an arbitrary mark of the practice folder, which tells namesakes apart
    made: str
    made_with: str  # the version of glassformer
    exercises: tuple[HandedExercise, ...]
    is_intact: bool = True  # whether the hash fits the content


def check_name(name: object) -> str:
    """A learner's name: a line of text, no longer than a table's column can bear."""
    if not isinstance(name, str) or not name.strip() or not name.isprintable():
        raise ConfigError(f"A name must be a line of text; got {name!r}.")
    if len(name) > _LONGEST_NAME:
        raise ConfigError(f"A name may have {_LONGEST_NAME} characters; got {len(name)}.")
    return name.strip()


def build_hand_in(
    name: str,
    exercises: Sequence[Exercise],
    workspace: Workspace,
    practice: ProgressStore,
    grader: Grader,
    *,
    progress: Callable[[int], None] = lambda _: None,
) -> HandIn:
    """Grade every exercise that was tried, as its file is now, and collect the sources."""
    if practice.learner is None:
        practice.learner = secrets.token_hex(8)
    handed = []
    for n, exercise in enumerate(exercises):
        progress(n)
        source = workspace.read(exercise)
        if source is None or not workspace.has_try(exercise):
            continue
        report = grader.grade_source(exercise, source, workspace.file(exercise))
        if report.passed:
            practice.mark_passed(exercise.name, date.today())
        elif report.faults and report.names_faults:
            practice.note_mistakes(exercise.name, report.faults)
        handed.append(
            HandedExercise(
                name=exercise.name,
                version=hash_exercise(exercise),
                passed=report.passed,
                day=practice.days.get(exercise.name) if report.passed else None,
                hints=practice.hints.get(exercise.name, 0),
                mistakes=tuple(practice.mistakes.get(exercise.name, ())),
                source=source,
            )
        )
    progress(len(exercises))
    return HandIn(
        name=check_name(name),
        learner=practice.learner,
        made=datetime.now(UTC).isoformat(timespec="seconds"),
        made_with=glassformer.__version__,
        exercises=tuple(handed),
    )


def write_hand_in(path: Path, hand_in: HandIn) -> None:
    """Write the file whole or not at all; only a hand-in is ever replaced."""
    plain = asdict(hand_in)
    del plain["is_intact"]
    plain = {"format": FORMAT, "version": VERSION, **plain}
    plain["sha256"] = _hash_content(plain)
    with atomic_file(path, DataError, mark=_MARK) as unfinished:
        unfinished.write_text(json.dumps(plain, indent=1, ensure_ascii=False) + "\n", "utf-8")


def read_hand_in(path: Path) -> HandIn:
    """A file as data: nothing in it is believed beyond its form, and nothing is run."""
    try:
        with open_regular(path) as file:
            content = file.read(_MOST_BYTES + 1)
    except OSError as error:
        raise UnusableHandIn("classroom.file.unreadable", reason=error.strerror or error) from None
    if len(content) > _MOST_BYTES:
        raise UnusableHandIn("classroom.file.large", most=_MOST_BYTES >> 20)
    try:
        plain = json.loads(content)
    except (ValueError, RecursionError):
        raise UnusableHandIn("classroom.file.json") from None
    if not isinstance(plain, dict) or plain.get("format") != FORMAT:
        raise UnusableHandIn("classroom.file.foreign")
    if plain.get("version") != VERSION:
        got = str(plain.get("version"))[:20]
        raise UnusableHandIn("classroom.file.version", known=VERSION, got=repr(got))
    try:
        return _read(plain)
    except (KeyError, TypeError, ValueError, RecursionError, ConfigError):
        raise UnusableHandIn("classroom.file.damaged") from None


def hash_exercise(exercise: Exercise) -> str:
    """A hash of everything that an exercise consists of: another one is another exercise."""
    found = hashlib.sha256()
    for file in sorted(each for each in exercise.folder.glob("[!.]*") if each.is_file()):
        content = file.read_bytes()
        found.update(f"{file.name}\0{len(content)}\0".encode() + content)
    return found.hexdigest()


def hash_source(source: str) -> str:
    """The SHA-256 of a source; that of its file, where it is saved as UTF-8."""
    return hashlib.sha256(source.encode("utf-8", errors="surrogatepass")).hexdigest()


def _hash_content(plain: dict[str, Any]) -> str:
    rest = {key: value for key, value in plain.items() if key != "sha256"}
    text = json.dumps(rest, sort_keys=True, ensure_ascii=True, separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()


def _read(plain: dict[str, Any]) -> HandIn:
    listed = plain["exercises"]
    if not isinstance(listed, list) or len(listed) > _MOST_EXERCISES:
        raise ValueError(len(listed))
    exercises = tuple(_read_exercise(each) for each in listed)
    if len({each.name for each in exercises}) != len(exercises):
        raise ValueError("an exercise occurs twice")
    made = datetime.fromisoformat(plain["made"])
    if made.tzinfo is None:
        raise ValueError(plain["made"])
    return HandIn(
        name=check_name(plain["name"]),
        learner=_read_line(plain["learner"]),
        made=made.astimezone(UTC).isoformat(timespec="seconds"),
        made_with=_read_line(plain["made_with"]),
        exercises=exercises,
        is_intact=plain.get("sha256") == _hash_content(plain),
    )


def _read_exercise(plain: dict[str, Any]) -> HandedExercise:
    day, source, mistakes = plain["day"], plain["source"], plain["mistakes"]
    if type(plain["passed"]) is not bool or type(plain["hints"]) is not int:
        raise TypeError(plain["passed"])
    if not isinstance(source, str) or len(source) > _MOST_SOURCE or not isinstance(mistakes, list):
        raise ValueError("source")
    source.encode("utf-8")  # a lone surrogate cannot be a file
    return HandedExercise(
        name=_read_line(plain["name"]),
        version=_read_line(plain["version"]),
        passed=plain["passed"],
        day=None if day is None else date.fromisoformat(day).isoformat(),
        hints=plain["hints"],
        mistakes=tuple(_read_line(each) for each in mistakes),
        source=source,
    )


def _read_line(plain: object) -> str:
    if not isinstance(plain, str) or not plain.isprintable() or len(plain) > _LONGEST_NAME:
        raise ValueError(plain)
    return plain
