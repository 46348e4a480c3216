"""The capstone behind a page: whose each part is, what the model writes, which part is wrong."""

import json
from pathlib import Path

import pytest
from pydantic import ValidationError

from glassformer.cli.app import run_words
from glassformer.errors import ConfigError
from glassformer.languages import CODES, Language
from glassformer.school.practice import find_exercise
from glassformer.school.practice.capstone import assembly
from glassformer.school.practice.capstone.parts import TRACKS
from glassformer.school.practice.isolation import LAYERS
from glassformer.workbench.jobs import Cancelled
from glassformer.workbench.rooms.learn.grading_thread import graders
from workbench.rooms.learn.asking import ask

FOLDER = Path("glassformer-practice")
QUESTION = "Where is the station?"
GONE = "def merge_heads(x):\n    return x.flatten(1)\n"  # of another shape


def write(sources: dict[str, str]) -> None:
    FOLDER.mkdir(exist_ok=True)
    for name, source in sources.items():
        (FOLDER / find_exercise(name).file_name).write_text(source, "utf-8")


def solutions(path: str) -> dict[str, str]:
    return {name: find_exercise(name).solution for name in TRACKS[path].parts}


@pytest.mark.parametrize("path", TRACKS)
def test_looking_at_the_parts_runs_and_writes_nothing(home, path):
    found = ask("capstone", path=path, lang="zh")
    assert [part["name"] for part in found["parts"]] == list(TRACKS[path].parts)
    assert not any(part["is_written"] or part["is_passed"] for part in found["parts"])
    assert found["folder"] == str(home / FOLDER) and found["model"] == TRACKS[path].model
    assert (found["languages"] == []) == (path == "decoder")
    assert list(home.iterdir()) == []


def test_a_stub_is_lent_and_a_try_is_the_learner_s():
    stub = find_exercise("rotary")
    write({"merge_heads": GONE, "rotary": ask("exercise", name=stub.name)["source"]})
    found = ask("capstone", path="translator")
    assert [part["name"] for part in found["parts"] if part["is_written"]] == ["merge_heads"]


def test_without_a_part_of_one_s_own_everything_is_lent(home):
    shares = []
    found = ask("join", path="translator", text=QUESTION, to="fr", progress=shares.append)
    assert found["written"] == "Où est la gare ?" and found["is_equal"]
    assert {part["state"] for part in found["parts"]} == {"lent"} and not found["is_complete"]
    assert shares == sorted(shares) and 0 < shares[-1] < 1
    assert set(found["isolation"]) <= set(LAYERS) and found["notice"] == ""
    assert list(home.iterdir()) == []


@pytest.mark.parametrize("path", TRACKS)
def test_the_learner_s_parts_make_a_model_and_are_remembered(capsys, path):
    write(solutions(path))
    found = ask("join", path=path, text=TRACKS[path].example)
    assert found["is_complete"] and {part["state"] for part in found["parts"]} == {"yours"}
    for code in CODES:
        assert len(found["said"][code]["parts"]) == len(found["parts"])
    steps = [step for part in ask("plan", name="weeks")["parts"] for step in part["steps"]]
    assert [s["name"] for s in steps if s["kind"] == "capstone" and s["done"]] == [path]
    words = ["practice", "capstone", "--path", path, "--json"]
    assert run_words(words) == 0
    terminal = json.loads(capsys.readouterr().out)
    assert terminal["joined"]["text"] == found["written"]
    assert terminal["sentences"] == found["said"]["en"]["outcome"]


def test_a_wrong_part_is_named_in_both_languages_and_left_out():
    write({**solutions("translator"), "merge_heads": GONE})
    found = ask("join", path="translator", text=QUESTION, to="zh")
    [at] = [n for n, part in enumerate(found["parts"]) if part["state"] == "wrong"]
    assert found["parts"][at]["name"] == "merge_heads" and found["parts"][at]["line"] == 2
    assert found["is_equal"] and not found["is_complete"] and found["written"]
    for code in CODES:
        said = found["said"][code]
        assert said["parts"][at]["sentences"] and "merge_heads" in said["parts"][at]["where"]
        assert Language(code).say("practice.capstone.lends") in said["outcome"]


def test_a_model_that_does_not_finish_says_so(monkeypatch):
    monkeypatch.setattr(assembly, "_SECONDS_WHOLE", 2.0)
    late = "calls = 0\ndef merge_heads(x):\n    global calls\n    calls += 1\n"
    late += "    while calls > 3:\n        pass\n    return x.transpose(1, 2).flatten(2)\n"
    write({"merge_heads": late})
    found = ask("join", path="translator", text=QUESTION)
    assert found["written"] is None and not found["is_equal"]
    assert "did not finish. Still running after 2 seconds" in found["said"]["en"]["outcome"][0]


def test_a_run_that_nobody_waits_for_ends_with_its_process():
    loop = "def merge_heads(x):\n    while True:\n        pass\n"
    write({"merge_heads": loop})
    looks = 0

    def leave(_share: float, _partial: object = None) -> None:
        nonlocal looks
        looks += 1
        if looks == 3:
            raise Cancelled

    with pytest.raises(Cancelled):
        ask("join", path="translator", text=QUESTION, progress=leave)
    assert graders == [] and looks == 3
    write({"merge_heads": find_exercise("merge_heads").solution})
    assert ask("join", path="translator", text=QUESTION)["is_equal"]


def test_a_part_that_is_no_file_is_wrong_and_does_not_run():
    FOLDER.mkdir()
    (FOLDER / find_exercise("merge_heads").file_name).mkdir()
    assert ask("capstone", path="translator")["parts"][2]["is_written"]
    found = ask("join", path="translator", text=QUESTION)
    [part] = [each for each in found["parts"] if each["name"] == "merge_heads"]
    assert part["state"] == "wrong" and found["is_equal"]


@pytest.mark.parametrize(
    ("asked", "sentence"),
    [
        ({"path": "decoder", "text": "The", "to": "fr"}, "a decoder continues the text"),
        ({"path": "translator", "text": "  \n"}, "got spaces alone"),
    ],
)
def test_what_cannot_be_run_is_said_before_anything_runs(asked, sentence):
    with pytest.raises(ConfigError, match=sentence):
        ask("join", **asked)


@pytest.mark.parametrize(
    "more",
    [
        {"path": "../translator"},
        {"text": ""},
        {"text": "a" * 501},
        {"to": "xx"},
        {"model": "/etc"},
        {"folder": "/etc"},
        {"checkpoint": "/etc"},
    ],
)
def test_only_the_two_models_and_short_texts_can_be_asked_for(more):
    with pytest.raises(ValidationError):
        ask("join", **{"path": "translator", "text": QUESTION, **more})


@pytest.mark.parametrize("path", TRACKS)
def test_the_longest_text_runs(path):
    found = ask("join", path=path, text=("a b c d " * 63)[:500])
    assert found["is_equal"], found["said"]["en"]["outcome"]
