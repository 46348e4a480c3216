"""Exercises: the terminal's folder, its grader, its limits; nothing a learner writes is lost."""

import json
from pathlib import Path

import pytest

from glassformer.cli.app import run_words
from glassformer.errors import ConfigError
from glassformer.languages import Language
from glassformer.school.practice import find_exercise
from glassformer.school.practice.isolation import LAYERS
from glassformer.school.practice.report_texts import describe_report
from glassformer.workbench.jobs import Cancelled
from glassformer.workbench.rooms.learn.grading_thread import graders
from workbench.rooms.learn.asking import ask

SCORES = find_exercise("dot_product_scores")
FOLDER = Path("glassformer-practice")
FILE = FOLDER / SCORES.file_name


def plain(passages: list) -> str:
    return "".join(piece["text"] for each in passages for line in each["lines"] for piece in line)


def check(source: str, **more: str) -> dict:
    return ask("check", name=SCORES.name, source=source, **more)


def test_looking_at_an_exercise_writes_nothing(home):
    found = ask("exercise", name=SCORES.name, lang="zh")
    assert not found["is_saved"] and found["source"].endswith(SCORES.stub)
    assert found["hints"] == [] and found["n_hints"] == 3 and found["solution"] is None
    assert list(home.iterdir()) == []
    with pytest.raises(ConfigError, match="did you mean dot_product_scores"):
        ask("exercise", name="dot_product_score")


def test_a_known_mistake_is_named_at_its_line():
    fault = next(each for each in SCORES.faults() if each.name == "all_turned")
    turned = "k.permute(*reversed(range(k.dim())))"
    source = f"def scores(q, k):\n    turned = {turned}\n    return q @ turned\n"
    found = check(source)
    assert not found["is_passed"] and found["line"] == 2
    for code in ("en", "zh"):
        sentences = [plain(each) for each in found["said"][code]["sentences"]]
        assert sentences == [fault.sentence(code)]
    assert FILE.read_text("utf-8") == source


def test_a_solution_passes_here_and_in_the_terminal(capsys):
    assert check(SCORES.stub + "# mine\n")["solution"] is not None  # after a try
    found = check(SCORES.solution, was=SCORES.stub + "# mine\n")
    assert found["is_passed"] and found["kept"] is None and found["said"]["zh"]["then"]
    assert run_words(["practice", "list", "--json"]) == 0
    rows = json.loads(capsys.readouterr().out)
    assert [row["name"] for row in rows if row["passed"]] == [SCORES.name]
    entry = next(e for e in ask("course")["exercises"] if e["name"] == SCORES.name)
    assert entry["is_passed"]
    assert run_words(["practice", "run", SCORES.name]) == 0
    assert not check("def scores(q, k):\n    return q\n", was=SCORES.solution)["is_passed"]
    entry = next(e for e in ask("course")["exercises"] if e["name"] == SCORES.name)
    assert not entry["is_passed"]


def test_numbers_and_sentences_are_those_of_the_grader():
    source = "def scores(q, k):\n    print('seen')\n    return 2 * (q @ k.transpose(-2, -1))\n"
    found = check(source)
    report = graders[0].grade_source(SCORES, source)
    said = describe_report(report, SCORES, Language("en"))
    assert len(found["said"]["en"]["sentences"]) == len(said.sentences)
    assert "seen" in found["printed"] and found["line"] == report.line
    assert found["table"] is not None and any(map(any, found["table"]["is_wrong"]))


def test_a_text_is_kept_and_a_version_from_elsewhere_is_not_lost():
    assert ask("save", name=SCORES.name, source="first\n", was=None) == {"kept": None}
    assert ask("exercise", name=SCORES.name)["source"] == "first\n"
    FILE.write_text("from an editor\n", "utf-8")
    assert ask("save", name=SCORES.name, source="second\n", was="first\n") == {
        "kept": f"old/{FILE.name}"
    }
    assert (FOLDER / "old" / FILE.name).read_text("utf-8") == "from an editor\n"
    assert FILE.read_text("utf-8") == "second\n"
    reset = ask("reset", name=SCORES.name)
    assert reset["source"] == FILE.read_text("utf-8") and reset["source"].endswith(SCORES.stub)
    kept = FOLDER / reset["kept"]
    assert kept.read_text("utf-8") == "second\n"


def test_hints_are_given_one_by_one_and_remembered():
    assert [len(ask("hint", name=SCORES.name)["hints"]) for _ in range(4)] == [1, 2, 3, 3]
    assert len(ask("exercise", name=SCORES.name)["hints"]) == 3


def test_what_cannot_be_kept_is_graded_all_the_same(home):
    (home / FOLDER).write_text("somebody's file")
    with pytest.raises(ConfigError, match="could not be written"):
        ask("save", name=SCORES.name, source="x")
    with pytest.raises(ConfigError, match="could not be saved"):
        ask("hint", name=SCORES.name)
    found = check(SCORES.solution)
    assert found["is_passed"] and "could not be written" in found["notice"]


HOSTILE = {
    "time": "def scores(q, k):\n    while True:\n        pass\n",
    "memory": "def scores(q, k):\n    return bytearray(1 << 34)\n",
    "exit": "import sys\nsys.exit(3)\n",
    "output": "def scores(q, k):\n    while True:\n        print('x' * 1000)\n",
    "network": "import socket\nsocket.create_connection(('127.0.0.1', 1))\n",
    "files": "def scores(q, k):\n    open('token', 'w').write('x')\n",
}


@pytest.mark.parametrize("kind", HOSTILE)
def test_code_that_means_no_good_ends_with_a_sentence(kind, home):
    found = check(HOSTILE[kind])
    assert not found["is_passed"]
    values = {"seconds": f"{SCORES.seconds:g}"} if kind == "time" else {}
    expected = Language("en").say(f"practice.found.{kind}", **values)
    assert [plain(each) for each in found["said"]["en"]["sentences"]] == [expected]
    assert not (home / "token").exists()
    assert len(found["printed"]) < 100_000
    assert check(SCORES.solution)["is_passed"]


def test_learner_code_is_shut_in_and_sees_no_token(monkeypatch):
    monkeypatch.setenv("PROBE", "visible")
    found = check("def scores(q, k):\n    print(open('/proc/self/environ').read())\n")
    if set(found["isolation"]) == set(LAYERS):
        assert "visible" not in found["printed"]


def test_a_check_that_nobody_waits_for_ends_with_its_processes():
    n = 0

    def leave(_share: float) -> None:
        nonlocal n
        n += 1
        if n > 3:
            raise Cancelled

    with pytest.raises(Cancelled):
        ask("check", name=SCORES.name, source=HOSTILE["time"], progress=leave)
    assert graders == []
    assert check(SCORES.solution)["is_passed"]
