"""Plans: those of the terminal, with the learner's own progress."""

import json
from datetime import date

import pytest
from pydantic import ValidationError

from glassformer.cli.app import run_words
from glassformer.languages import CODES, Language
from glassformer.school.plans import PLANS, read_plan
from glassformer.school.practice import find_exercise
from glassformer.workbench.rooms.learn.records import open_learning
from workbench.rooms.learn.asking import ask

SCORES = find_exercise("dot_product_scores")


@pytest.mark.parametrize("code", CODES)
def test_the_choice_names_every_plan_with_its_size(code):
    found = ask("plans", lang=code)
    assert [each["name"] for each in found["plans"]] == list(PLANS)
    for each in found["plans"]:
        plan = read_plan(each["name"])
        assert (each["minutes"], each["steps"]) == (plan.minutes, len(plan.steps))
        assert each["title"] == plan.title[code] and each["done"] == 0
    assert "100" in found["basis"]


@pytest.mark.parametrize("code", CODES)
def test_a_plan_is_the_terminal_s(code, capsys):
    found = ask("plan", name="weekend", lang=code)
    assert run_words(["learn", "--plan", "weekend", "--json", "--lang", code]) == 0
    assert json.loads(capsys.readouterr().out) == found


def test_what_was_done_here_is_done_in_the_plan(home):
    assert ask("plan", name="weekend")["next"]["name"] == "why"
    learning = open_learning(Language("en"))
    learning.mark_read("why", date(2026, 5, 1))
    learning.save()
    assert ask("check", name=SCORES.name, source=SCORES.solution)["is_passed"]
    found = ask("plan", name="weekend")
    done = {(s["kind"], s["name"]) for part in found["parts"] for s in part["steps"] if s["done"]}
    assert done == {("chapter", "why"), ("practice", SCORES.name)}
    assert (found["next"]["kind"], found["next"]["name"]) == ("lab", "complexity")
    assert [each["done"] for each in ask("plans")["plans"]] == [2, 2, 0]


def test_an_experiment_that_was_run_is_done():
    ask("measure", name="complexity")
    steps = [step for part in ask("plan", name="weekend")["parts"] for step in part["steps"]]
    assert [step["name"] for step in steps if step["done"]] == ["complexity"]


def test_another_name_is_refused():
    with pytest.raises(ValidationError, match="weekend"):
        ask("plan", name="../plans")
