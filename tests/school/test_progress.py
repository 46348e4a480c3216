"""The progress file: whole, and never lost."""

import json
import os
import socket
import stat
from datetime import date
from pathlib import Path

import pytest

from glassformer.errors import DataError
from glassformer.school.progress import (
    FILE,
    ExperimentRun,
    NotProgress,
    ProgressStore,
    Unsaved,
    default_path,
    load_progress,
)
from glassformer.school.spaced_repetition import Card, Rating, review

TODAY = date(2026, 5, 1)


def test_what_is_saved_comes_back(tmp_path):
    path = tmp_path / "deep" / "progress.json"
    progress = load_progress(path)
    assert (progress.read, progress.cards, progress.kept_aside) == ({}, {}, None)
    progress.mark_read("masks", TODAY)
    progress.mark_read("masks", date(2027, 1, 1))
    progress.cards["masks-count"] = review(None, Rating.Good, TODAY)
    progress.current, progress.passed, progress.hints = "scaling", {"scores"}, {"scaling": 2}
    progress.capstone = {"translator": ["rotary"]}
    progress.mark_passed("attention", TODAY)
    progress.mark_passed("attention", date(2027, 1, 1))
    progress.note_mistakes("attention", ["unscaled"])
    progress.note_mistakes("attention", ["unscaled", "wrong_axis"])
    progress.experiments["scale"] = ExperimentRun("2026-05-01", "quick", "holds")
    progress.learner = "0123abcd"
    progress.save()
    again = load_progress(path)
    assert again.read == {"masks": "2026-05-01"}
    assert again.days == {"attention": "2026-05-01"}
    assert again.mistakes == {"attention": ["unscaled", "wrong_axis"]}
    assert again == progress
    assert sorted(p.name for p in path.parent.iterdir()) == ["progress.json"]


OURS = '{\n "format": "glassformer progress",\n'
LEARNING = '{\n "format": "glassformer learning progress",\n'
PRACTICE = '{\n  "format": "glassformer practice progress",\n'
SECTIONS = '"chapters": %s, "cards": %s, "exercises": %s}'
NONE = '{"current": null, "passed": [], "hints": {}}'
CAPSTONE = NONE[:-1] + ', "capstone": {"translator": %s}}'

MORE = SECTIONS[:-1] % ("{}", "{}", NONE) + ', "experiments": %s, "learner": %s}'
RUN = '{"scale": {"day": "2026-05-01", "size": "quick", "outcome": %s}}'


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        ("{", "damaged"),
        (OURS, "damaged"),
        (OURS[:20], "damaged"),
        (OURS + ' "version": 1}', "damaged"),
        (OURS + ' "version": 1,' + SECTIONS % ("{}", '{"a": {"due": "soon"}}', NONE), "damaged"),
        (OURS + ' "version": 1,' + SECTIONS % ('{"masks": "when"}', "{}", NONE), "damaged"),
        (OURS + ' "version": 1,' + SECTIONS % ("{}", "{}", '{"passed": []}'), "damaged"),
        (OURS + ' "version": 1,' + SECTIONS % ("{}", "{}", CAPSTONE % "[[]]"), "damaged"),
        (OURS + ' "version": 1,' + SECTIONS % ("{}", "{}", CAPSTONE % "3"), "damaged"),
        (OURS + ' "version": 1,' + MORE % ('{"scale": {"day": "soon"}}', "null"), "damaged"),
        (OURS + ' "version": 1,' + MORE % (RUN % "3", "null"), "damaged"),
        (OURS + ' "version": 1,' + MORE % ("{}", "7"), "damaged"),
        (OURS + ' "version": ' + "[" * 100_000, "damaged"),
        (OURS + ' "version": 2, "new": true}', "other-version"),
        (LEARNING, "damaged"),
        (LEARNING[:20], "damaged"),
        (LEARNING + ' "version": 1}', "damaged"),
        (LEARNING + ' "version": 1, "read": {}, "cards": {"a": {"due": "soon"}}}', "damaged"),
        (LEARNING + ' "version": 1, "read": {"masks": "when"}, "cards": {}}', "damaged"),
        (LEARNING + ' "version": 1, "read": {"masks": 3}, "cards": {}}', "damaged"),
        (LEARNING + ' "version": 1, "read": [], "cards": {}}', "damaged"),
        (LEARNING + ' "version": ' + "[" * 100_000, "damaged"),
        ('{\n "version": 1,\n "read": {\n  "masks": "2026-0', "damaged"),
        (LEARNING + ' "version": 2, "new": true}', "other-version"),
        (LEARNING + ' "version": "1"}', "other-version"),
        (PRACTICE, "damaged"),
        (PRACTICE + '"version": 2}', "other-version"),
        (PRACTICE + '"version": 1, "current": 3, "passed": [], "hints": {}}', "damaged"),
        (PRACTICE + '"version": 1, "current": null, "passed": [1], "hints": {}}', "damaged"),
        (PRACTICE + '"version": 1, "current": null, "passed": [], "hints": {"a": -1}}', "damaged"),
        (PRACTICE + '"version": 1, "current": null, "passed": "all", "hints": {}}', "damaged"),
        (PRACTICE + '"version": ' + "[" * 100_000, "damaged"),
        ('{\n  "version": 1,\n  "current": "dot', "damaged"),
    ],
)
def test_what_cannot_be_read_is_kept_aside(tmp_path, content, reason):
    path = tmp_path / "progress.json"
    path.write_text(content, "utf-8")
    progress = load_progress(path)
    assert progress.kept_aside == tmp_path / f"progress.json.{reason}-1"
    assert progress.kept_aside.read_text("utf-8") == content
    assert not path.exists()
    progress.save()
    path.write_text(content, "utf-8")
    assert load_progress(path).kept_aside == tmp_path / f"progress.json.{reason}-2"


@pytest.mark.plain
@pytest.mark.parametrize(
    "content",
    [
        b"Dear diary\n",
        b"\xff\xfe\x00",
        b"[]",
        b"null",
        b"[" * 100_000,
        b'{"name": "mine", "version": "1.0.0"}',
        b'{"version": 1}',
        b'{"version": 2, "read": {}, "cards": {}}',
        b'{"format": "another", "version": 1, "read": {}, "cards": {}}',
        b"\x00",
        b'{"done": 0.4}',
        b'{"version": 2}',
    ],
)
def test_a_file_of_somebody_else_is_left_alone(tmp_path, content):
    path = tmp_path / "mine.json"
    path.write_bytes(content)
    with pytest.raises(NotProgress, match=r"mine.json was not written by glassformer and was"):
        load_progress(path)
    assert [p.name for p in tmp_path.iterdir()] == ["mine.json"]
    assert path.read_bytes() == content


@pytest.mark.plain
@pytest.mark.parametrize("through", ["itself", "link"])
@pytest.mark.parametrize("kind", ["a folder", "a named pipe", "a socket", "a device"])
def test_what_is_no_file_is_left_alone(tmp_path, monkeypatch, kind, through):
    monkeypatch.chdir(tmp_path)  # names of sockets are short
    path = tmp_path / "thing"
    if kind == "a folder":
        path.mkdir()
    elif kind == "a named pipe":
        os.mkfifo(path)
    elif kind == "a socket":
        with socket.socket(socket.AF_UNIX) as made:
            made.bind("thing")
    else:
        # Only its kind is pretended: no test goes near a device.
        path.write_text("a device\n")
        real = Path.stat

        def pretended(self, **options):
            found = real(self, **options)
            is_it = os.path.realpath(self) == str(path)
            return os.stat_result((stat.S_IFCHR | 0o666, *found[1:])) if is_it else found

        monkeypatch.setattr(Path, "stat", pretended)
    named = path
    if through == "link":
        named = tmp_path / "link"
        named.symlink_to(path)
    before = os.lstat(path)
    with pytest.raises(NotProgress, match=rf"{named.name} is {kind} and was left unchanged"):
        load_progress(named)
    monkeypatch.undo()
    after = os.lstat(path)
    assert (before.st_ino, before.st_mode) == (after.st_ino, after.st_mode)
    assert len(list(tmp_path.iterdir())) == (2 if through == "link" else 1)


def test_an_empty_file_is_taken(tmp_path):
    path = tmp_path / "p.json"
    path.touch()
    load_progress(path).save()
    assert load_progress(path).kept_aside is None


SM2 = {"due": "2026-05-08", "in_a_row": 2, "interval": 6, "ease": 2.36, "answered": 3}
LEARNED = {"version": 1, "read": {"masks": "2026-05-01"}, "cards": {"masks-count": SM2}}
PRACTISED = {"version": 1, "current": "scaling", "passed": ["scores"], "hints": {"scaling": 2}}


@pytest.mark.parametrize("named", [True, False], ids=["named", "before formats had names"])
@pytest.mark.parametrize("kind", ["learning", "practice"])
def test_files_of_before_are_carried_over(tmp_path, kind, named):
    path = tmp_path / "p.json"
    plain = dict(LEARNED if kind == "learning" else PRACTISED)
    if named:
        plain["format"] = f"glassformer {kind} progress"
    path.write_text(json.dumps(plain))
    for _ in range(2):  # as it was, and as it is written from then on
        progress = load_progress(path)
        assert progress.kept_aside is None
        if kind == "learning":
            assert progress.read == {"masks": "2026-05-01"}
            card = progress.cards["masks-count"]
            assert (card.due, card.reviewed, card.answered) == ("2026-05-08", "2026-05-02", 3)
        else:
            found = (progress.current, progress.passed, progress.hints)
            assert found == ("scaling", {"scores"}, {"scaling": 2})
        progress.save()
        assert json.loads(path.read_text())["format"] == "glassformer progress"
    assert [p.name for p in tmp_path.iterdir()] == ["p.json"]


@pytest.fixture
def home(tmp_path, monkeypatch):
    monkeypatch.setattr("glassformer.school.progress.user_data_path", lambda *_, **__: tmp_path)
    return tmp_path


def test_the_users_earlier_file_is_read_once(home):
    earlier = home / "learning.json"
    earlier.write_text(json.dumps(LEARNED))
    before = earlier.read_text()
    progress = load_progress()
    assert progress.path == default_path() == home / FILE and set(progress.cards) == {"masks-count"}
    progress.mark_read("why", TODAY)
    progress.save()
    assert earlier.read_text() == before
    earlier.write_text("{")
    assert set(load_progress().read) == {"masks", "why"}


def test_an_earlier_file_that_is_damaged_is_kept_aside(home):
    (home / "learning.json").write_text("{")
    progress = load_progress()
    assert progress.kept_aside == home / "learning.json.damaged-1"
    assert progress == ProgressStore(home / FILE, kept_aside=progress.kept_aside)


def test_a_link_stays_a_link(tmp_path):
    (tmp_path / "real.json").touch()
    (tmp_path / "link.json").symlink_to(tmp_path / "real.json")
    progress = load_progress(tmp_path / "link.json")
    progress.mark_read("masks", TODAY)
    progress.save()
    assert (tmp_path / "link.json").is_symlink()
    assert load_progress(tmp_path / "real.json").read == {"masks": "2026-05-01"}


@pytest.mark.parametrize("name", [FILE, "learning.json"])
def test_what_lies_at_the_usual_place_is_ours(home, name):
    (home / name).write_bytes(b"\xff\xfe")
    assert load_progress().kept_aside == home / f"{name}.damaged-1"


def test_the_usual_place_is_the_platforms():
    path = default_path()
    assert path.is_absolute() and path.parts[-2:] == ("glassformer", "progress.json")


def test_a_file_is_readable_json(tmp_path):
    progress = load_progress(tmp_path / "p.json")
    progress.cards["a"] = Card("2026-05-03", "2026-05-01", 2.3065, 2.1181)
    progress.save()
    assert json.loads((tmp_path / "p.json").read_text()) == {
        "format": "glassformer progress",
        "version": 1,
        "chapters": {},
        "cards": {
            "a": {
                "due": "2026-05-03",
                "reviewed": "2026-05-01",
                "stability": 2.3065,
                "difficulty": 2.1181,
                "answered": 1,
            }
        },
        "exercises": {
            "current": None,
            "passed": [],
            "hints": {},
            "days": {},
            "mistakes": {},
            "capstone": {},
        },
        "experiments": {},
        "learner": None,
    }


def test_a_file_is_written_whole(tmp_path, monkeypatch):
    path = tmp_path / FILE
    ProgressStore(path, current="a", passed={"a"}, hints={"a": 2}).save()
    monkeypatch.setattr(json, "dumps", lambda *_, **__: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        ProgressStore(path, current="b").save()
    monkeypatch.undo()

    def half(path, text, *_):
        with path.open("w") as file:
            file.write(text[:9])
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(Path, "write_text", half)
    with pytest.raises(Unsaved, match="No space left on device"):
        ProgressStore(path, current="b").save()
    found = load_progress(path)
    assert (found.current, found.passed, found.hints) == ("a", {"a"}, {"a": 2})
    assert [p.name for p in tmp_path.iterdir()] == [FILE]


def test_a_deleted_folder_comes_back_only_if_asked(tmp_path):
    progress = ProgressStore(tmp_path / "gone" / FILE)
    with pytest.raises(Unsaved, match="No such file or directory"):
        progress.save(create_folder=False)
    assert not list(tmp_path.iterdir())


@pytest.mark.plain
def test_a_place_that_cannot_be_written_is_named(tmp_path):
    (tmp_path / "file").write_text("")
    progress = load_progress(tmp_path / "other.json")
    progress.path = tmp_path / "file" / "progress.json"
    with pytest.raises(DataError, match=r"a writable file; .*progress.json: "):
        progress.save()


@pytest.mark.plain
def test_a_file_that_may_not_be_read_is_named(tmp_path, monkeypatch):
    def refused(*_):
        raise PermissionError(13, os.strerror(13))

    (tmp_path / "progress.json").touch()
    monkeypatch.setattr(Path, "read_bytes", refused)
    with pytest.raises(DataError, match=r"a readable file; .*Permission denied."):
        load_progress(tmp_path / "progress.json")


@pytest.mark.plain
def test_a_file_that_cannot_be_put_aside_is_named(tmp_path, monkeypatch):
    def refused(*_):
        raise PermissionError(13, os.strerror(13))

    path = tmp_path / "progress.json"
    path.write_text("{")
    monkeypatch.setattr(Path, "rename", refused)
    with pytest.raises(DataError, match=r"must be renamed; .*Permission denied."):
        load_progress(path)
