"""A learner's progress: chapters read, questions answered, exercises passed, experiments run.

One kind of file for learn, quiz and practice, written whole or not at all and never thrown away.
Chapters and questions are kept in the user's data folder. Exercises are kept in the learner's
practice folder: they say which of the files beside them pass, so they belong to those files.
"""

import json
from collections.abc import Iterable
from dataclasses import asdict, dataclass, field
from datetime import date
from pathlib import Path
from typing import Any

from platformdirs import user_data_path

from glassformer.errors import ConfigError, DataError
from glassformer.school.spaced_repetition import Card, card_from_sm2
from glassformer.storage import move_aside, special_kind, write_atomically

FORMAT, VERSION = "glassformer progress", 1
FILE = "progress.json"
# What learn and quiz, and practice, wrote before they shared a file; also without a format.
_LEARNING, _PRACTICE = "glassformer learning progress", "glassformer practice progress"
_LEARNING_FILE = "learning.json"
_BEGINNINGS = (
    f'{{\n "format": "{FORMAT}"',
    f'{{\n "format": "{_LEARNING}"',
    '{\n "version": 1,\n "read": {',
    f'{{\n  "format": "{_PRACTICE}"',
    '{\n  "version": 1,\n  "current": ',
)


class Unsaved(DataError):
    """Progress that could not be written: where, and why."""

    def __init__(self, path: Path, reason: str) -> None:
        super().__init__(f"Progress must be stored in a writable file; {path}: {reason}.")
        self.path, self.reason = path, reason


class NotProgress(ConfigError):
    """A path that cannot hold progress: a device, a folder, somebody else's file."""

    def __init__(self, path: Path, kind: str | None) -> None:
        is_what = f"is {kind}" if kind else "was not written by glassformer"
        super().__init__(
            f"Progress is stored in a file of its own; {path} {is_what} and was left unchanged. "
            "Choose another place."
        )
        self.path, self.is_special = path, kind is not None


@dataclass(frozen=True, slots=True)
class ExperimentRun:
    """The latest run of an experiment."""

    day: str
    size: str
    outcome: str  # holds, partly or fails


@dataclass
class ProgressStore:
    """One learner's progress, and the file it is stored in."""

    path: Path
    read: dict[str, str] = field(default_factory=dict)  # chapters, with the day
    cards: dict[str, Card] = field(default_factory=dict)  # questions
    current: str | None = None  # the exercise to continue with
    passed: set[str] = field(default_factory=set)  # exercises
    hints: dict[str, int] = field(default_factory=dict)  # read, by exercise
    days: dict[str, str] = field(default_factory=dict)  # on which an exercise first passed
    mistakes: dict[str, list[str]] = field(default_factory=dict)  # named so far, by exercise
    capstone: dict[str, list[str]] = field(default_factory=dict)  # own parts of a running model
    experiments: dict[str, ExperimentRun] = field(default_factory=dict)
    learner: str | None = None  # an arbitrary mark that tells two hand-ins of one name apart
    kept_aside: Path | None = None  # an older file that could not be read

    def mark_read(self, chapter: str, today: date) -> None:
        self.read.setdefault(chapter, today.isoformat())

    def mark_passed(self, exercise: str, today: date) -> None:
        self.passed.add(exercise)
        self.days.setdefault(exercise, today.isoformat())

    def note_mistakes(self, exercise: str, faults: Iterable[str]) -> None:
        """Remember each named mistake once, however often the file is saved with it."""
        known = self.mistakes.setdefault(exercise, [])
        known += [name for name in faults if name not in known]

    def save(self, *, create_folder: bool = True) -> None:
        """Write the file, whole or not at all."""
        plain = {
            "format": FORMAT,
            "version": VERSION,
            "chapters": self.read,
            "cards": {name: card.as_dict() for name, card in self.cards.items()},
            "exercises": {
                "current": self.current,
                "passed": sorted(self.passed),
                "hints": self.hints,
                "days": self.days,
                "mistakes": self.mistakes,
                "capstone": self.capstone,
            },
            "experiments": {name: asdict(run) for name, run in self.experiments.items()},
            "learner": self.learner,
        }
        text = json.dumps(plain, indent=1, ensure_ascii=False) + "\n"
        try:
            if create_folder:
                self.path.absolute().parent.mkdir(parents=True, exist_ok=True)
            write_atomically(self.path, text)
        except OSError as error:
            raise Unsaved(self.path, error.strerror or str(error)) from None


def load_progress(path: Path | None = None) -> ProgressStore:
    """The progress in a file (by default the user's); empty where there is none to read.

    A damaged file, or one of another version, is renamed and kept beside the new one. Only a
    regular file that we wrote is ever renamed or replaced; anything else is refused.
    """
    if path is not None:
        return _load(path)
    path = default_path()
    earlier = path.with_name(_LEARNING_FILE)
    if path.exists() or not earlier.exists():
        return _load(path)
    found = _load(earlier)
    found.path = path  # the earlier file stays; it is not read again once this one is saved
    return found


def default_path() -> Path:
    """Where the platform keeps data of its users."""
    return user_data_path("glassformer", appauthor=False) / FILE


def _load(path: Path) -> ProgressStore:
    try:
        kind = special_kind(path)
        if kind is not None:
            raise NotProgress(path, kind)
        path = path.resolve()  # a link to a file of ours stays a link
        text = path.read_bytes().decode("utf-8", errors="replace")
    except (FileNotFoundError, NotADirectoryError):
        return ProgressStore(path)
    except OSError as error:
        raise DataError(
            f"Progress must be stored in a readable file; {path}: {error.strerror}."
        ) from None
    plain = _parse(text)
    try:
        return _read(path, plain)
    except (ValueError, TypeError, KeyError, AttributeError):
        pass
    if not text.strip():
        return ProgressStore(path)  # an empty file has nothing to lose
    if not _is_ours(path, text, plain):
        raise NotProgress(path, None)
    is_other = plain.get("format") in (FORMAT, _LEARNING, _PRACTICE) and plain.get("version") != 1
    reason = "other-version" if is_other else "damaged"
    return ProgressStore(path, kept_aside=_set_aside(path, reason))


def _parse(text: str) -> dict[str, Any]:
    try:
        plain = json.loads(text)
    except (ValueError, RecursionError):
        return {}
    return plain if isinstance(plain, dict) else {}


def _read(path: Path, plain: dict[str, Any]) -> ProgressStore:
    if plain["version"] != VERSION:
        raise ValueError(plain["version"])
    store = ProgressStore(path)
    match plain.get("format"):
        case "glassformer progress":
            store.read = _read_days(plain["chapters"])
            store.cards = {str(n): Card.from_dict(card) for n, card in plain["cards"].items()}
            _read_exercises(plain["exercises"], store)
            store.experiments = _read_experiments(plain.get("experiments", {}))
            store.learner = _read_mark(plain.get("learner"))
        case "glassformer practice progress":
            _read_exercises(plain, store)
        case None if "cards" not in plain:
            _read_exercises(plain, store)
        case None | "glassformer learning progress":
            store.read = _read_days(plain["read"])
            store.cards = {str(n): card_from_sm2(card) for n, card in plain["cards"].items()}
        case other:
            raise ValueError(other)
    return store


def _read_days(plain: dict[str, str]) -> dict[str, str]:
    return {str(name): date.fromisoformat(day).isoformat() for name, day in plain.items()}


def _read_exercises(plain: dict[str, Any], store: ProgressStore) -> None:
    current, passed, hints = plain["current"], plain["passed"], plain["hints"]
    if not isinstance(passed, list) or not isinstance(hints, dict):
        raise TypeError(passed)
    names = [*passed, *hints, *([] if current is None else [current])]
    if not all(isinstance(name, str) for name in names):
        raise TypeError(names)
    if not all(type(n) is int and n >= 0 for n in hints.values()):
        raise ValueError(hints)
    store.current, store.passed, store.hints = current, set(passed), hints
    # Files from before have none of these.
    store.days = _read_days(plain.get("days", {}))
    store.mistakes = _read_lists(plain.get("mistakes", {}))
    store.capstone = _read_lists(plain.get("capstone", {}))


def _read_lists(plain: dict[str, list[str]]) -> dict[str, list[str]]:
    if not all(isinstance(name, str) for names in plain.values() for name in names):
        raise TypeError(plain)
    return {str(key): list(names) for key, names in plain.items()}


def _read_experiments(plain: dict[str, dict[str, str]]) -> dict[str, ExperimentRun]:
    found = {str(name): ExperimentRun(**run) for name, run in plain.items()}
    for run in found.values():
        date.fromisoformat(run.day)
        if not (isinstance(run.size, str) and isinstance(run.outcome, str)):
            raise TypeError(run)
    return found


def _read_mark(plain: str | None) -> str | None:
    if plain is not None and not isinstance(plain, str):
        raise TypeError(plain)
    return plain


def _is_ours(path: Path, text: str, plain: dict[str, Any]) -> bool:
    """Whether a file that cannot be used is one of ours: by what it says, or by its place."""
    begins = any(text.startswith(each) or each.startswith(text) for each in _BEGINNINGS)
    own = default_path().resolve()
    is_named = plain.get("format") in (FORMAT, _LEARNING, _PRACTICE)
    return begins or is_named or path in (own, own.with_name(_LEARNING_FILE))


def _set_aside(path: Path, reason: str) -> Path:
    try:
        return move_aside(path, reason)
    except OSError as error:
        raise DataError(
            f"Progress that cannot be read must be renamed; {path}: {error.strerror}."
        ) from None
