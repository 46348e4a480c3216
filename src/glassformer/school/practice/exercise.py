"""An exercise: a folder with a task in both languages, a stub, a solution, faults and checks."""

import re
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from difflib import get_close_matches
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from glassformer.errors import ConfigError

EXERCISES = Path(__file__).parents[2] / "course" / "exercises"
KINDS = ("code", "numbers", "shapes", "fault", "predict", "drawing")
_FOLDER = re.compile(r"\d{2,3}_[a-z0-9_]+")
_SETTINGS = {
    "kind",
    "minutes",
    "difficulty",
    "entry",
    "forbid",
    "require",
    "needs",
    "seconds",
    "planted",
    "cases",
}


@dataclass(frozen=True, kw_only=True, slots=True)
class Fault:
    """A known mistake: the solution with an edit, and the sentence for whoever makes it."""

    name: str
    source: str
    text: Mapping[str, str]
    look: str | None = None

    def sentence(self, code: str) -> str:
        return self.text[code]


@dataclass(frozen=True, kw_only=True, slots=True)
class Brief:
    """What an exercise says in one language."""

    title: str
    text: str
    hints: tuple[str, ...]
    then: str


@dataclass(frozen=True, kw_only=True, slots=True)
class Exercise:
    """One exercise as it lies in its folder."""

    number: int
    name: str
    folder: Path
    kind: str
    minutes: int
    difficulty: int
    entry: tuple[str, ...]
    forbid: tuple[str, ...] = ()
    require: tuple[str, ...] = ()
    needs: tuple[str, ...] = ()
    seconds: float = 5.0
    planted: str | None = None
    cases: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    kit: Path | None = None  # a model's activations, to be graded on in the place of checks.py

    def __post_init__(self) -> None:
        if self.kind not in KINDS:
            raise ConfigError(
                f"{self.name}: kind must be one of {', '.join(KINDS)}; got {self.kind!r}."
            )

    @property
    def file_name(self) -> str:
        """What the learner's file is called."""
        return f"{self.number:02d}_{self.name}.py"

    @property
    def stub(self) -> str:
        return (self.folder / "stub.py").read_text("utf-8")

    @property
    def solution(self) -> str:
        return (self.folder / "solution.py").read_text("utf-8")

    @property
    def hides_numbers(self) -> bool:
        """Whether showing the expected values would give the answer away."""
        return self.kind in ("numbers", "shapes", "predict", "drawing")

    def missing_packages(self) -> list[str]:
        """The packages that the exercise needs and that are not here."""
        return [name for name in self.needs if find_spec(name) is None]

    def brief(self, code: str) -> Brief:
        """The texts in one language."""
        return read_brief((self.folder / f"{code}.md").read_text("utf-8"))

    def faults(self) -> tuple[Fault, ...]:
        """The known mistakes, as whole sources."""
        table = tomllib.loads((self.folder / "faults.toml").read_text("utf-8"))
        solution = self.solution
        return tuple(_fault(self.name, solution, entry) for entry in table.get("fault", []))


def read_exercise(folder: Path) -> Exercise:
    """An exercise from its folder."""
    table = tomllib.loads((folder / "exercise.toml").read_text("utf-8"))
    if unknown := sorted(set(table) - _SETTINGS):
        raise ConfigError(
            f"{folder.name}/exercise.toml may hold {', '.join(sorted(_SETTINGS))}; "
            f"got {', '.join(unknown)}."
        )
    number, name = folder.name.split("_", 1)
    lists = {key: tuple(table.pop(key, ())) for key in ("entry", "forbid", "require", "needs")}
    seconds = float(table.pop("seconds", 5))
    return Exercise(number=int(number), name=name, folder=folder, seconds=seconds, **lists, **table)


@cache
def all_exercises() -> tuple[Exercise, ...]:
    """Every exercise that ships with the package, in order."""
    folders = (p for p in EXERCISES.iterdir() if _FOLDER.fullmatch(p.name))
    return tuple(sorted(map(read_exercise, folders), key=lambda exercise: exercise.number))


def find_exercise(name: str, exercises: Sequence[Exercise] | None = None) -> Exercise:
    """The exercise of that name; its number or its file's name will do.

    >>> find_exercise("01").name
    'dot_product_scores'
    """
    known = all_exercises() if exercises is None else exercises
    bare = re.sub(r"^\d{2,3}_", "", Path(name).name.removesuffix(".py"))
    for exercise in known:
        if bare == exercise.name or (name.isdigit() and int(name) == exercise.number):
            return exercise
    raise UnknownExercise(name, get_close_matches(bare, [each.name for each in known], n=1))


class UnknownExercise(ConfigError):
    """No exercise has the name that was asked for."""

    def __init__(self, name: str, near: Sequence[str]) -> None:
        super().__init__(f"There is no exercise {name!r}.")
        self.name, self.near = name, near


def read_brief(text: str) -> Brief:
    """Title, task, hints and last words of a Markdown text.

    >>> read_brief("# One\\nDo it.\\n## Hint\\nTry.\\n## Then\\nDone.").hints
    ('Try.',)
    """
    head, *sections = re.split(r"^## +", text, flags=re.MULTILINE)
    title, _, body = head.strip().partition("\n")
    hints, then = [], ""
    for section in sections:
        name, _, content = section.partition("\n")
        match name.strip():
            case "Hint":
                hints.append(content.strip())
            case "Then":
                then = content.strip()
            case other:
                raise ConfigError(f"A task has sections Hint and Then; got {other!r}.")
    return Brief(title=title.removeprefix("# "), text=body.strip(), hints=tuple(hints), then=then)


def _fault(exercise: str, solution: str, entry: dict[str, Any]) -> Fault:
    name = entry["name"]
    source = entry.get("source", solution)
    edits = entry.get("edits", [])
    if "find" in entry:
        edits = [{"find": entry["find"], "replace": entry["replace"]}]
    for edit in edits:
        if source.count(edit["find"]) != 1:
            raise ConfigError(
                f"{exercise}: what the fault {name} looks for must occur once in the solution; "
                f"{edit['find']!r} occurs {source.count(edit['find'])} times."
            )
        source = source.replace(edit["find"], edit["replace"])
    texts = {code: entry[code] for code in ("en", "zh")}
    return Fault(name=name, source=source, text=texts, look=entry.get("look"))
