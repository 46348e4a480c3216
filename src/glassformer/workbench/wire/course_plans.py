"""Learn: course plans, their steps, and what the learner has done of them."""

from typing import Literal

from glassformer.workbench.wire.learn import LearnRequest
from glassformer.workbench.wire.requests import Answer

PlanName = Literal["weekend", "weeks", "interview"]


class PlansRequest(LearnRequest):
    """The course plans that one can choose from."""


class PlanEntry(Answer):
    """A plan to choose: how long it may take, and how much of it is done."""

    name: PlanName
    title: str
    goal: str
    minutes: int
    steps: int
    done: int


class PlansAnswer(Answer):
    """The plans, and what their times rest on."""

    plans: list[PlanEntry]
    basis: str


class PlanRequest(LearnRequest):
    """One plan, step by step."""

    name: PlanName


class PlanStepEntry(Answer):
    """One thing to do: read a chapter, run an experiment, write an exercise, answer questions."""

    kind: Literal["chapter", "lab", "practice", "quiz", "capstone"]
    name: str
    title: str
    minutes: int  # an estimate
    done: bool
    command: str  # that does it in the terminal


class PlanPartEntry(Answer):
    """A day or a week of a plan."""

    title: str
    minutes: int
    steps: list[PlanStepEntry]


class PlanAnswer(Answer):
    """A plan with what the learner has done of it."""

    name: PlanName
    title: str
    goal: str
    minutes: int
    parts: list[PlanPartEntry]
    next: PlanStepEntry | None  # the first step that is not done
