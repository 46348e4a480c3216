"""Questions: the round, the answers and the schedule of the terminal's quiz."""

import json
from datetime import date

import pytest

from glassformer.cli.app import run_words
from glassformer.errors import ConfigError
from glassformer.school.learn import read_questions
from glassformer.school.spaced_repetition import GRADES, review
from workbench.rooms.learn.asking import ask


def test_a_round_begins_with_the_first_new_questions():
    found = ask("questions", topic="scale", most=3)
    of_scale = [each.name for each in read_questions() if each.topic == "scale"]
    assert [each["name"] for each in found["questions"]] == of_scale[:3]
    assert (found["due"], found["new"], found["next_day"]) == (0, len(of_scale), None)
    with pytest.raises(ConfigError, match="No topic is called 'scales'"):
        ask("questions", topic="scales")


@pytest.mark.parametrize(
    ("typed", "right", "read"),
    [("256", True, True), ("16", False, True), ("", False, True), ("many", None, False)],
)
def test_typed_answers_are_graded(typed, right, read):
    found = ask("answer", name="scale-variance", typed=typed)
    assert (found["is_right"], found["is_read"]) == (right, read)
    assert bool(found["short"]) == read  # what cannot be read gives nothing away


def test_an_answer_has_its_explanation_in_both_languages():
    english, chinese = (ask("answer", name="scale-why", lang=code) for code in ("en", "zh"))
    assert english["is_right"] is None and english["full"] != chinese["full"]
    assert any(piece["kind"] == "formula" for piece in english["full"])
    assert {"kind": "lab", "name": "scale"} in english["proofs"]


def test_a_grade_is_scheduled_as_in_the_terminal_and_counts_once(capsys):
    expected = review(None, GRADES["hard"], date.today())
    assert ask("grade", name="scale-why", grade="hard") == {"due": expected.due, "counts": True}
    assert ask("grade", name="scale-why", grade="easy") == {"due": expected.due, "counts": False}
    assert run_words(["quiz", "scale", "--json"]) == 0
    rows = {row["name"]: row for row in json.loads(capsys.readouterr().out)}
    assert rows["scale-why"]["card"] == expected.as_dict()
    round_ = ask("questions", topic="scale", most=100)
    assert "scale-why" not in [each["name"] for each in round_["questions"]]
    assert round_["next_day"] == expected.due
    with pytest.raises(ConfigError, match="There is no question 'x'"):
        ask("grade", name="x", grade="good")
