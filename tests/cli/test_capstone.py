"""`glassformer practice capstone`: lent, own and wrong parts, in both languages and as JSON."""

import json
from contextlib import nullcontext

import pytest

from glassformer.school.practice import find_exercise
from glassformer.school.practice.capstone import assembly
from glassformer.school.practice.grading import Grader

FOLDER = "glassformer-practice"


@pytest.fixture(scope="module")
def grader():
    with Grader() as grader:
        yield grader


@pytest.fixture(autouse=True)
def one_process_for_all(grader, monkeypatch):
    assert assembly  # imported before the patch: it keeps the real one
    monkeypatch.setattr("glassformer.school.practice.grading.Grader", lambda: nullcontext(grader))


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return tmp_path / FOLDER


def write(folder, name, source=None):
    folder.mkdir(exist_ok=True)
    exercise = find_exercise(name)
    (folder / exercise.file_name).write_text(source or exercise.solution, encoding="utf-8")


def test_before_anything_is_written_every_part_is_lent(run, folder):
    code, out, err = run("practice", "capstone")
    assert (code, err) == (0, "")
    assert "0 yours, 11 lent, 0 wrong" in out and "Où est la gare ?" in out
    assert "token by token (5 tokens)" in out
    assert "Next: write padding_mask yourself: glassformer practice padding_mask" in out
    assert not folder.exists()


def test_own_parts_are_marked_and_remembered(run, folder):
    write(folder, "embedding")
    write(folder, "greedy")
    code, out, _ = run("practice", "capstone", "I like tea.", "--to", "zh", "--lang", "zh")
    assert code == 0 and "✓ 你的  33 embedding" in out and "· 借来  50 rotary" in out
    stored = json.loads((folder / "progress.json").read_text("utf-8"))
    assert stored["exercises"]["capstone"] == {"translator": ["embedding", "greedy"]}


def test_a_wrong_part_is_named_with_its_line(run, folder):
    exercise = find_exercise("rms_norm")
    write(folder, "rms_norm", exercise.solution.replace(" * self.weight", ""))
    code, out, _ = run("practice", "capstone", "--path", "decoder")
    assert code == 1 and f"✗ wrong  {exercise.number} rms_norm" in out
    assert "weight is not used" in out and "must be" in out
    assert f"Look at line 17 of {exercise.file_name}." in out
    assert "With your wrong parts in place, it writes" in out
    assert "Next: repair rms_norm: glassformer practice rms_norm" in out
    stored = json.loads((folder / "progress.json").read_text("utf-8"))
    assert stored["exercises"]["capstone"] == {"decoder": []}


def test_json_is_for_programs(run, folder):
    write(folder, "swiglu")
    code, out, _ = run("practice", "capstone", "It was", "--path", "decoder", "--json")
    data = json.loads(out)
    assert code == 0 and data["equal"] and not data["complete"]
    assert (data["path"], data["text"], data["model"]) == ("decoder", "It was", "writer")
    states = {part["part"]: part["state"] for part in data["parts"]}
    assert states["swiglu"] == "yours" and states["rotary"] == "lent"
    assert data["joined"]["tokens"] == data["library"]["tokens"]


@pytest.mark.plain
@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--path", "encoder"], "--path must be translator or decoder; got encoder"),
        (["--checkpoint", "x"], "--checkpoint needs a decoder. Add --path decoder"),
        (["--path", "decoder", "--to", "fr"], "--to is for the translator"),
        (["--path", "decoder", "--checkpoint", "nowhere"], "nowhere"),
        (["--to", "de"], "translates into"),
    ],
)
def test_what_cannot_be_built_is_one_line(run, folder, options, message):
    code, out, err = run("practice", "capstone", *options)
    assert (code, out) == (2, "") and message in err and err.count("\n") == 1
