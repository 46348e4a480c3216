"""Course plans: which chapters, experiments, exercises and questions, in which order.

Minutes are estimates, not measurements of learners: an exercise has those its author wrote down, a
chapter is read at 100 English words a minute with its code and formulas, a question takes two
minutes, and an experiment its running time plus three minutes for reading its verdict.
"""

import math
import re
import tomllib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import Any, Literal

from glassformer.errors import ConfigError
from glassformer.languages import CODES, Language
from glassformer.school.lab import SECONDS, ExperimentTexts
from glassformer.school.learn.blocks import plain_text
from glassformer.school.learn.chapters import chapter_names, read_chapter
from glassformer.school.learn.questions import read_questions, topics
from glassformer.school.overview import list_references
from glassformer.school.practice import all_exercises, find_exercise
from glassformer.school.practice.capstone.parts import TRACKS
from glassformer.school.progress import ProgressStore

Kind = Literal["chapter", "lab", "practice", "quiz", "capstone"]
PLANS = ("weekend", "weeks", "interview")
WORDS_PER_MINUTE, MINUTES_PER_QUESTION, MINUTES_PER_VERDICT = 100, 2, 3
_MINUTES_OF_CAPSTONE = 5  # running it; its parts are exercises
_COMMANDS: dict[str, str] = {
    "chapter": "learn {name}",
    "lab": "lab {name}",
    "practice": "practice {name}",
    "quiz": "quiz {name}",
    "capstone": "practice capstone --path {name}",
}


@dataclass(frozen=True, slots=True)
class PlanStep:
    """One thing to do: read a chapter, run an experiment, write an exercise, answer questions."""

    kind: Kind
    name: str

    @property
    def command(self) -> str:
        """What to type for it."""
        return f"glassformer {_COMMANDS[self.kind].format(name=self.name)}"

    @property
    def minutes(self) -> int:
        """How long it may take; see the top of this file for what that rests on."""
        match self.kind:
            case "chapter":
                return _round_up(_count_words(self.name) / WORDS_PER_MINUTE)
            case "lab":
                return _round_up(SECONDS[self.name]["full"] / 60 + MINUTES_PER_VERDICT)
            case "practice":
                return find_exercise(self.name).minutes
            case "quiz":
                return MINUTES_PER_QUESTION * len(_questions_about(self.name))
            case "capstone":
                return _MINUTES_OF_CAPSTONE

    def title(self, language: Language) -> str:
        """What it is called."""
        match self.kind:
            case "chapter" | "quiz":
                return plain_text(read_chapter(self.name, language).title)
            case "lab":
                return ExperimentTexts(self.name, language).title
            case "practice":
                return find_exercise(self.name).brief(language.code).title
            case "capstone":
                return find_exercise(TRACKS[self.name].joint).brief(language.code).title

    def is_done(self, learning: ProgressStore, practice: ProgressStore) -> bool:
        """Whether a learner has done it: opened, run, passed, answered every question."""
        match self.kind:
            case "chapter":
                return self.name in learning.read
            case "lab":
                return self.name in learning.experiments
            case "practice":
                return self.name in practice.passed
            case "quiz":
                return all(name in learning.cards for name in _questions_about(self.name))
            case "capstone":
                own = practice.capstone.get(self.name, [])
                return set(TRACKS[self.name].parts) <= set(own)


@dataclass(frozen=True, slots=True)
class PlanPart:
    """A day or a week of a plan."""

    title: dict[str, str]
    steps: tuple[PlanStep, ...]

    @property
    def minutes(self) -> int:
        return sum(step.minutes for step in self.steps)


@dataclass(frozen=True, slots=True)
class CoursePlan:
    """A plan: its parts in order, and how many days lie between the beginnings of two."""

    name: str
    title: dict[str, str]
    goal: dict[str, str]
    days: int
    parts: tuple[PlanPart, ...]

    @property
    def steps(self) -> list[PlanStep]:
        return [step for part in self.parts for step in part.steps]

    @property
    def minutes(self) -> int:
        return sum(part.minutes for part in self.parts)

    def find_next(self, learning: ProgressStore, practice: ProgressStore) -> PlanStep | None:
        """The first step that is not done."""
        return next((step for step in self.steps if not step.is_done(learning, practice)), None)


@cache
def read_plan(name: str) -> CoursePlan:
    """The plan of a name.

    >>> [part.title["en"] for part in read_plan("weekend").parts]
    ['Saturday: attention', 'Sunday: the Transformer']
    """
    if name not in PLANS:
        raise ConfigError(f"A plan must be one of {', '.join(PLANS)}; got {name!r}.")
    table = tomllib.loads(files("glassformer.course").joinpath("plans.toml").read_text("utf-8"))
    plain = table[name]
    seen: set[PlanStep] = set()
    return CoursePlan(
        name=name,
        title={code: plain[code]["title"] for code in CODES},
        goal={code: plain[code]["goal"] for code in CODES},
        days=plain["days"],
        parts=tuple(_read_part(part, seen) for part in plain["parts"]),
    )


def describe_plan(
    plan: CoursePlan, learning: ProgressStore, practice: ProgressStore, language: Language
) -> dict[str, Any]:
    """A plan as plain values, with what a learner has done of it."""
    following = plan.find_next(learning, practice)

    def describe(step: PlanStep) -> dict[str, Any]:
        return {
            "kind": step.kind,
            "name": step.name,
            "title": step.title(language),
            "minutes": step.minutes,
            "done": step.is_done(learning, practice),
            "command": step.command,
        }

    return {
        "name": plan.name,
        "title": plan.title[language.code],
        "goal": plan.goal[language.code],
        "minutes": plan.minutes,
        "parts": [
            {
                "title": part.title[language.code],
                "minutes": part.minutes,
                "steps": [describe(step) for step in part.steps],
            }
            for part in plan.parts
        ],
        "next": None if following is None else describe(following),
    }


def _read_part(plain: dict[str, Any], seen: set[PlanStep]) -> PlanPart:
    steps = []
    for text in plain["steps"]:
        for step in _expand(*text.split()):
            if step not in seen:  # two chapters may name one experiment
                seen.add(step)
                steps.append(step)
    return PlanPart({code: plain[code] for code in CODES}, tuple(steps))


def _expand(kind: str, name: str) -> Iterator[PlanStep]:
    if kind != "whole":
        yield _check_step(kind, name)
        return
    yield PlanStep("chapter", name)
    named = list_references(name, Language("en"))
    yield from (PlanStep("lab", each) for each in named["lab"])
    yield from (PlanStep("practice", each) for each in named["practice"])
    if name in topics():
        yield PlanStep("quiz", name)


def _check_step(kind: str, name: str) -> PlanStep:
    known: dict[Any, Callable[[], Any]] = {
        "chapter": chapter_names,
        "lab": lambda: SECONDS,
        "practice": lambda: [exercise.name for exercise in all_exercises()],
        "quiz": topics,
        "capstone": lambda: TRACKS,
    }
    if kind not in known or name not in known[kind]():
        raise ConfigError(f"A step of a plan must exist; there is no {kind} {name}.")
    return PlanStep(kind, name)  # type: ignore[arg-type]


@cache
def _count_words(chapter: str) -> int:
    """The words of the English chapter, with its code; both languages have the same estimate."""
    folder = files("glassformer.course").joinpath("chapters", "en")
    (file,) = [each for each in folder.iterdir() if each.name.partition("-")[2] == f"{chapter}.md"]
    return len(re.findall(r"\w+", file.read_text("utf-8")))


def _questions_about(topic: str) -> list[str]:
    return [question.name for question in read_questions() if question.topic == topic]


def _round_up(minutes: float) -> int:
    return max(1, math.ceil(minutes))
