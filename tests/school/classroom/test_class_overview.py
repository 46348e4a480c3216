"""Many hand-ins at a glance, and what grading them again does to what they say."""

import json
from dataclasses import replace

import pytest

from glassformer.languages import Language
from glassformer.school.classroom.class_overview import describe_overview, survey_class
from glassformer.school.classroom.hand_in import (
    HandedExercise,
    HandIn,
    hash_exercise,
    write_hand_in,
)
from glassformer.school.practice.grading import Grader, GradingError
from glassformer.school.practice.verification import verify_one

ENGLISH = Language("en")
LATER = "2026-05-02T10:00:00+00:00"


@pytest.fixture
def hand(classroom):
    """Put a hand-in into the class: its file's name, the learner's, and sources by exercise."""
    versions = {exercise.name: hash_exercise(exercise) for exercise in classroom.exercises}

    def put(file, name, sources, *, learner=None, made="2026-05-01T10:00:00+00:00", **more):
        exercises = tuple(
            HandedExercise(
                name=exercise,
                version=versions.get(exercise, "none"),
                passed=more.get("passed", "right" in source),
                day=None,
                hints=0,
                mistakes=more.get("mistakes", ()),
                source=source,
            )
            for exercise, source in sources.items()
        )
        handed = HandIn(
            name=name, learner=learner or file, made=made, made_with="0.1.0", exercises=exercises
        )
        write_hand_in(classroom.hand_ins / f"{file}.json", handed)
        return classroom.hand_ins / f"{file}.json"

    return put


def survey(classroom, grader=None):
    return survey_class(classroom, ENGLISH, grader=grader)


def notes(overview):
    return describe_overview(overview, ENGLISH)["notes"]


def test_a_table_of_learners_and_exercises(classroom, hand):
    hand("ada", "Ada", {"centred": "right", "attention": "wrong"})
    hand("bob", "Bob", {"attention": "wrong"}, mistakes=("unscaled", "not a fault"))
    overview = survey(classroom)
    assert [(row.name, row.n_solved) for row in overview.rows] == [("Ada", 1), ("Bob", 0)]
    assert overview.rows[0].states == {
        "centred": "solved",
        "attention": "tried",
        "causal_mask": "untried",
    }
    assert overview.list_stuck() == [("attention", ["Ada", "Bob"])]
    assert notes(overview) == []


def test_without_hand_ins_there_is_nothing(classroom):
    assert survey(classroom).rows == []
    classroom.hand_ins.rmdir()
    assert survey(classroom).rows == []


def test_grading_again_decides_and_counts_mistakes_once_for_each_learner(classroom, hand, words):
    hand("ada", "Ada", {"centred": "mean_added"}, passed=True, mistakes=("mean_added",))
    hand("bob", "Bob", {"centred": "mean_added"}, mistakes=("mean_of_columns",))
    overview = survey(classroom, words)
    assert [row.states["centred"] for row in overview.rows] == ["tried", "tried"]
    assert notes(overview) == ["Ada handed in centred as solved; it does not pass now."]
    assert [(each.n_learners, each.sentence.split(".")[0]) for each in overview.mistakes] == [
        (2, "You add the mean"),
        (1, "You take the mean over the tokens"),
    ]


def test_the_newest_of_a_learner_counts_and_namesakes_stay_apart(classroom, hand):
    hand("ada-1", "Ada", {"centred": "wrong"}, learner="a")
    hand("ada-2", "Ada", {"centred": "right"}, learner="a", made=LATER)
    hand("other", "Ada", {"centred": "wrong"}, learner="b")
    overview = survey(classroom)
    states = {row.name: row.states["centred"] for row in overview.rows}
    assert states == {"Ada (ada-2.json)": "solved", "Ada (other.json)": "tried"}
    assert notes(overview) == [
        "ada-1.json is an earlier hand-in of the same learner; ada-2.json counts.",
        "2 learners are called Ada; each is listed with the name of the file.",
    ]


def test_odd_files_are_named_and_the_others_are_read(classroom, hand):
    changed = hand("ada", "Ada", {"centred": "wrong", "rotary": "right"})
    plain = json.loads(changed.read_text())
    plain["exercises"][0].update(passed=True, version="older")
    changed.write_text(json.dumps(plain))
    (classroom.hand_ins / "broken.json").write_text("{")
    (classroom.hand_ins / "folder.json").mkdir()
    (classroom.hand_ins / "notes.txt").write_text("not for us")
    overview = survey(classroom)
    assert (len(overview.rows), overview.n_unusable) == (1, 2)
    found = "\n".join(notes(overview))
    for words in ("broken.json is not JSON", "folder.json cannot be read", "hash does not fit"):
        assert words in found
    assert "not in this class: rotary" in found and "another edition of: centred" in found


def test_an_exercise_that_cannot_be_graded_is_no_mistake_of_a_learner(classroom, hand, words):
    hand("ada", "Ada", {"centred": "right"})

    def fail(*_, **__):
        raise GradingError("broken")

    words.grade_source = fail
    overview = survey(classroom, words)
    assert overview.rows[0].states["centred"] == "ungraded"
    assert "could not be graded" in notes(overview)[0]


def test_in_the_sandbox(classroom, hand, tmp_path):
    """A right source, a wrong one and a hostile one; and the example that `practice new` writes."""
    (own,) = classroom.own
    target = tmp_path / "written"
    hostile = f"""
import os, pathlib
try:
    pathlib.Path({str(target)!r}).write_text("x")
except BaseException:
    pass
os.system("touch {target}")
def centred(x):
    return x
"""
    hand("ada", "Ada", {"centred": own.solution})
    hand("bob", "Bob", {"centred": own.solution.replace("x - x", "x + x")}, passed=True)
    hand("eve", "Eve", {"centred": hostile}, passed=True)
    with Grader() as grader:
        overview = survey(classroom, grader)
        verdict = verify_one(replace(own, minutes=3), grader, seeds=(1, 2, 3))
    assert verdict.problems == () and verdict.n_faults == 3
    states = {row.name: row.states["centred"] for row in overview.rows}
    assert states == {"Ada": "solved", "Bob": "tried", "Eve": "tried"}
    assert not target.exists()
    assert any("You add the mean" in each.sentence for each in overview.mistakes)
