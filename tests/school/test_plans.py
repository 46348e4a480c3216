"""Course plans: every step exists, once, and the learner's progress says what is next."""

from datetime import date
from pathlib import Path

import pytest

from glassformer.errors import ConfigError
from glassformer.languages import Language
from glassformer.school.lab import SECONDS
from glassformer.school.learn import chapter_names, read_questions
from glassformer.school.plans import PLANS, PlanStep, _check_step, describe_plan, read_plan
from glassformer.school.practice import all_exercises
from glassformer.school.practice.capstone.parts import TRACKS
from glassformer.school.progress import ExperimentRun, ProgressStore
from glassformer.school.spaced_repetition import Rating, review

TODAY = date(2026, 5, 1)


def stores():
    return ProgressStore(Path("a")), ProgressStore(Path("b"))


@pytest.mark.parametrize("name", PLANS)
def test_each_step_is_there_once_and_takes_time(name):
    plan = read_plan(name)
    assert len(set(plan.steps)) == len(plan.steps)
    assert all(step.minutes > 0 for step in plan.steps)
    for code in ("en", "zh"):
        assert all(step.title(Language(code)) for step in plan.steps)


@pytest.mark.parametrize("name", PLANS)
def test_an_exercise_is_not_planned_before_the_chapter_that_it_belongs_to(name):
    weeks = [step for step in read_plan("weeks").steps if step.kind in ("chapter", "practice")]
    chapter, home = "", {}
    for step in weeks:
        chapter = step.name if step.kind == "chapter" else chapter
        home[step] = chapter
    steps = read_plan(name).steps
    for place, step in enumerate(steps):
        chapter = PlanStep("chapter", home[step]) if step.kind == "practice" else step
        assert chapter not in steps[place + 1 :], step


def test_four_weeks_are_the_whole_course():
    found = {kind: set() for kind in ("chapter", "lab", "practice", "quiz", "capstone")}
    for step in read_plan("weeks").steps:
        found[step.kind].add(step.name)
    assert found["chapter"] == set(chapter_names())
    assert found["practice"] == {each.name for each in all_exercises()}
    assert found["lab"] == set(SECONDS)
    assert found["quiz"] == {question.topic for question in read_questions()}
    assert found["capstone"] == set(TRACKS)


def test_a_weekend_contains_every_part_of_its_capstone():
    planned = {step.name for step in read_plan("weekend").steps if step.kind == "practice"}
    assert set(TRACKS["translator"].parts) <= planned


def test_a_plan_is_walked_to_its_end():
    learning, practice = stores()
    plan = read_plan("weekend")
    assert plan.find_next(learning, practice) == PlanStep("chapter", "why")
    learning.mark_read("why", TODAY)
    assert plan.find_next(learning, practice) == PlanStep("lab", "complexity")
    learning.experiments["complexity"] = ExperimentRun("2026-05-01", "quick", "holds")
    assert plan.find_next(learning, practice) == PlanStep("chapter", "weights")
    for step in plan.steps:
        if step.kind == "chapter":
            learning.mark_read(step.name, TODAY)
        elif step.kind == "lab":
            learning.experiments[step.name] = ExperimentRun("2026-05-01", "full", "fails")
        elif step.kind == "practice":
            practice.mark_passed(step.name, TODAY)
    learning.cards = {each.name: review(None, Rating.Easy, TODAY) for each in read_questions()}
    practice.capstone["translator"] = ["rotary"]  # only one part of it runs
    assert plan.find_next(learning, practice) == PlanStep("capstone", "translator")
    practice.capstone["translator"] = list(TRACKS["translator"].parts)
    assert plan.find_next(learning, practice) is None
    described = describe_plan(plan, learning, practice, Language("zh"))
    assert described["next"] is None and described["title"] == "一个周末"
    assert all(step["done"] for part in described["parts"] for step in part["steps"])


@pytest.mark.plain
def test_what_is_not_there_is_refused():
    with pytest.raises(ConfigError, match="one of weekend, weeks, interview; got 'year'"):
        read_plan("year")
    with pytest.raises(ConfigError, match="there is no lab dragons"):
        _check_step("lab", "dragons")
