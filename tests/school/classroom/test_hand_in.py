"""A hand-in: what it holds, what an accident does to it, and files that are none."""

import json
import os

import pytest

from glassformer.errors import ConfigError, DataError
from glassformer.languages import Language
from glassformer.school.classroom.hand_in import (
    UnusableHandIn,
    build_hand_in,
    check_name,
    hash_exercise,
    read_hand_in,
    write_hand_in,
)
from glassformer.school.practice.workspace import Workspace
from glassformer.school.progress import FILE, load_progress


@pytest.fixture
def file(classroom, words, tmp_path):
    """Ada's: one exercise solved, one tried, one as it was."""
    workspace = Workspace(tmp_path / "ada", Language("en"))
    workspace.create(classroom.exercises)
    (workspace.folder / "501_centred.py").write_text("# right, 对\n", "utf-8")
    (workspace.folder / "05_attention.py").write_text("# wrong\n", "utf-8")
    practice = load_progress(workspace.folder / FILE)
    practice.hints["attention"] = 2
    practice.note_mistakes("attention", ["unscaled"])
    path = tmp_path / "ada.json"
    write_hand_in(path, build_hand_in("Ada", classroom.exercises, workspace, practice, words))
    assert practice.learner is not None and practice.passed == {"centred"}
    return path


def test_what_was_tried_is_handed_in_with_its_source(file, classroom):
    found = read_hand_in(file)
    assert (found.name, found.is_intact) == ("Ada", True)
    solved, tried = found.exercises
    assert (solved.name, solved.passed, solved.source) == ("centred", True, "# right, 对\n")
    assert solved.day is not None and solved.version == hash_exercise(classroom.own[0])
    assert (tried.passed, tried.day, tried.hints, tried.mistakes) == (False, None, 2, ("unscaled",))


def test_a_change_is_noticed_and_another_layout_is_none(file):
    plain = json.loads(file.read_text("utf-8"))
    file.write_text(json.dumps(dict(reversed(plain.items()))), "utf-8")
    assert read_hand_in(file).is_intact
    plain["exercises"][1]["passed"] = True
    file.write_text(json.dumps(plain), "utf-8")
    assert not read_hand_in(file).is_intact


def test_another_edition_of_an_exercise_has_another_hash(classroom):
    (own,) = classroom.own
    before = hash_exercise(own)
    (own.folder / ".DS_Store").write_text("an operating system's")
    assert hash_exercise(own) == before
    (own.folder / "checks.py").write_text("# fewer\n")
    assert hash_exercise(own) != before


def test_only_a_hand_in_is_replaced(file, tmp_path):
    handed = read_hand_in(file)
    write_hand_in(file, handed)
    diary = tmp_path / "diary.json"
    diary.write_text('{"dear": "diary"}')
    with pytest.raises(DataError, match="glassformer did not write it"):
        write_hand_in(diary, handed)


@pytest.mark.parametrize(
    ("content", "key"),
    [
        (b"", "classroom.file.json"),
        (b"\xff\xfe{", "classroom.file.json"),
        (b"[" * 100_000, "classroom.file.json"),
        (b'{"format": "glassformer hand-in", "version": 1', "classroom.file.json"),
        (b"[]", "classroom.file.foreign"),
        (b'{"format": "glassformer progress", "version": 1}', "classroom.file.foreign"),
        (b'{"format": "glassformer hand-in", "version": 2}', "classroom.file.version"),
        (b'{"format": "glassformer hand-in", "version": 1}', "classroom.file.damaged"),
        (b" " * ((16 << 20) + 1), "classroom.file.large"),
    ],
)
def test_what_is_no_hand_in_is_refused(tmp_path, content, key):
    path = tmp_path / "odd.json"
    path.write_bytes(content)
    with pytest.raises(UnusableHandIn) as caught:
        read_hand_in(path)
    assert caught.value.key == key
    said = [
        Language(code).say(key, file="odd.json", **caught.value.values) for code in ("en", "zh")
    ]
    assert all("odd.json" in sentence for sentence in said)


@pytest.mark.parametrize(
    "change",
    [
        {"name": "a\x1b[2J"},
        {"name": " "},
        {"name": 3},
        {"name": "x" * 81},
        {"learner": "a\nb"},
        {"made": "yesterday"},
        {"made": "2026-05-01T10:00:00"},
        {"exercises": {}},
        {"exercises": [{}]},
        {"exercises": ["attention"]},
        {"made_with": None},
    ],
)
def test_values_that_none_can_have_are_refused(file, change):
    plain = json.loads(file.read_text("utf-8"))
    file.write_text(json.dumps({**plain, **change}), "utf-8")
    with pytest.raises(UnusableHandIn, match="damaged"):
        read_hand_in(file)


@pytest.mark.parametrize(
    "change",
    [
        {"name": "\x1b[2J"},
        {"passed": 1},
        {"hints": True},
        {"day": "soon"},
        {"source": None},
        {"source": "x" * ((1 << 20) + 1)},
        {"source": "\ud800"},
        {"mistakes": ["\x07"]},
        {"name": "centred"},
    ],
)
def test_so_are_those_of_an_exercise(file, change):
    plain = json.loads(file.read_text("utf-8"))
    plain["exercises"][1].update(change)
    file.write_text(json.dumps(plain), "utf-8")
    with pytest.raises(UnusableHandIn, match="damaged"):
        read_hand_in(file)


def test_a_pipe_is_not_waited_for(tmp_path):
    os.mkfifo(tmp_path / "pipe.json")
    with pytest.raises(UnusableHandIn, match="unreadable"):
        read_hand_in(tmp_path / "pipe.json")


@pytest.mark.plain
def test_a_name_is_a_line():
    assert check_name(" 李雷 ") == "李雷"
    with pytest.raises(ConfigError, match=r"line of text; got 'a\\nb'"):
        check_name("a\nb")
    with pytest.raises(ConfigError, match="may have 80 characters; got 81"):
        check_name("x" * 81)
