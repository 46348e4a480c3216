"""Course plans: which there are, and one of them with what the learner has done of it."""

from typing import Any

from glassformer.languages import Language
from glassformer.school.plans import (
    MINUTES_PER_QUESTION,
    MINUTES_PER_VERDICT,
    PLANS,
    WORDS_PER_MINUTE,
    CoursePlan,
    describe_plan,
    read_plan,
)
from glassformer.school.progress import ProgressStore
from glassformer.workbench.jobs import Progress
from glassformer.workbench.memory import Memory
from glassformer.workbench.rooms.learn.records import open_learning, open_practice
from glassformer.workbench.wire.course_plans import PlanRequest, PlansRequest


def list_plans(asked: PlansRequest, _memory: Memory, _progress: Progress) -> dict[str, Any]:
    """The plans to choose from."""
    language = Language(asked.lang)
    learning, practice = open_learning(language), open_practice(language)
    basis = language.say(
        "plan.basis",
        words=WORDS_PER_MINUTE,
        question=MINUTES_PER_QUESTION,
        verdict=MINUTES_PER_VERDICT,
    )
    plans = [_describe(read_plan(name), learning, practice, language) for name in PLANS]
    return {"plans": plans, "basis": basis}


def show_plan(asked: PlanRequest, _memory: Memory, _progress: Progress) -> dict[str, Any]:
    """One plan, step by step."""
    language = Language(asked.lang)
    learning, practice = open_learning(language), open_practice(language)
    return describe_plan(read_plan(asked.name), learning, practice, language)


def _describe(
    plan: CoursePlan, learning: ProgressStore, practice: ProgressStore, language: Language
) -> dict[str, Any]:
    return {
        "name": plan.name,
        "title": plan.title[language.code],
        "goal": plan.goal[language.code],
        "minutes": plan.minutes,
        "steps": len(plan.steps),
        "done": sum(step.is_done(learning, practice) for step in plan.steps),
    }
