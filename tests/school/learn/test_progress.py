"""The progress file: whole, and never lost."""

import json
import os
import socket
import stat
from datetime import date
from pathlib import Path

import pytest

from glassformer.errors import DataError
from glassformer.school.learn.progress import NotProgress, default_path, load_progress
from glassformer.school.learn.spaced_repetition import answered

TODAY = date(2026, 5, 1)


def test_what_is_saved_comes_back(tmp_path):
    path = tmp_path / "deep" / "learning.json"
    progress = load_progress(path)
    assert (progress.read, progress.cards, progress.kept_aside) == ({}, {}, None)
    progress.mark_read("masks", TODAY)
    progress.mark_read("masks", date(2027, 1, 1))
    progress.cards["masks-count"] = answered(None, 4, TODAY)
    progress.save()
    again = load_progress(path)
    assert again.read == {"masks": "2026-05-01"}
    assert again.cards == progress.cards
    assert sorted(p.name for p in path.parent.iterdir()) == ["learning.json"]


OURS = '{\n "format": "glassformer learning progress",\n'


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        ("{", "damaged"),
        (OURS, "damaged"),
        (OURS[:20], "damaged"),
        (OURS + ' "version": 1}', "damaged"),
        (OURS + ' "version": 1, "read": {}, "cards": {"a": {"due": "soon"}}}', "damaged"),
        (OURS + ' "version": 1, "read": {"masks": "when"}, "cards": {}}', "damaged"),
        (OURS + ' "version": 1, "read": {"masks": 3}, "cards": {}}', "damaged"),
        (OURS + ' "version": 1, "read": [], "cards": {}}', "damaged"),
        (OURS + ' "version": ' + "[" * 100_000, "damaged"),
        ('{\n "version": 1,\n "read": {\n  "masks": "2026-0', "damaged"),
        (OURS + ' "version": 2, "new": true}', "other-version"),
        (OURS + ' "version": "1"}', "other-version"),
    ],
)
def test_what_cannot_be_read_is_kept_aside(tmp_path, content, reason):
    path = tmp_path / "learning.json"
    path.write_text(content, "utf-8")
    progress = load_progress(path)
    assert progress.kept_aside == tmp_path / f"learning.json.{reason}-1"
    assert progress.kept_aside.read_text("utf-8") == content
    assert not path.exists()
    progress.save()
    path.write_text(content, "utf-8")
    assert load_progress(path).kept_aside == tmp_path / f"learning.json.{reason}-2"


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
    ],
)
def test_a_file_of_somebody_else_is_left_alone(tmp_path, content):
    path = tmp_path / "mine.json"
    path.write_bytes(content)
    with pytest.raises(NotProgress, match=r"mine.json was not written by glassformer, and was"):
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
    with pytest.raises(NotProgress, match=rf"{named.name} is {kind}, and was left as it is"):
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


def test_a_file_from_before_formats_had_names(tmp_path):
    path = tmp_path / "p.json"
    path.write_text('{"version": 1, "read": {"masks": "2026-05-01"}, "cards": {}}')
    assert load_progress(path).read == {"masks": "2026-05-01"}


def test_a_link_stays_a_link(tmp_path):
    (tmp_path / "real.json").touch()
    (tmp_path / "link.json").symlink_to(tmp_path / "real.json")
    progress = load_progress(tmp_path / "link.json")
    progress.mark_read("masks", TODAY)
    progress.save()
    assert (tmp_path / "link.json").is_symlink()
    assert load_progress(tmp_path / "real.json").read == {"masks": "2026-05-01"}


def test_what_lies_at_the_usual_place_is_ours(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path))
    monkeypatch.setattr("sys.platform", "linux")
    path = default_path(os.environ, "linux")
    path.parent.mkdir()
    path.write_bytes(b"\xff\xfe")
    assert load_progress(path).kept_aside == path.with_name("learning.json.damaged-1")


def test_a_file_is_readable_json(tmp_path):
    progress = load_progress(tmp_path / "p.json")
    progress.save()
    assert json.loads((tmp_path / "p.json").read_text()) == {
        "format": "glassformer learning progress",
        "version": 1,
        "read": {},
        "cards": {},
    }


@pytest.mark.parametrize(
    ("environ", "platform", "path"),
    [
        ({"HOME": "/home/me"}, "linux", "/home/me/.local/share/glassformer/learning.json"),
        ({"HOME": "/h", "XDG_DATA_HOME": "/d"}, "linux", "/d/glassformer/learning.json"),
        (
            {"HOME": "/h", "XDG_DATA_HOME": "relative"},
            "linux",
            "/h/.local/share/glassformer/learning.json",
        ),
        (
            {"HOME": "/Users/me"},
            "darwin",
            "/Users/me/Library/Application Support/glassformer/learning.json",
        ),
        ({"LOCALAPPDATA": "/appdata"}, "win32", "/appdata/glassformer/learning.json"),
    ],
)
def test_the_place_is_the_platforms(environ, platform, path):
    assert default_path(environ, platform).as_posix() == path


@pytest.mark.plain
def test_a_place_that_cannot_be_written_is_named(tmp_path):
    (tmp_path / "file").write_text("")
    progress = load_progress(tmp_path / "other.json")
    progress.path = tmp_path / "file" / "learning.json"
    with pytest.raises(DataError, match=r"can be written; .*learning.json.* Use --progress FILE"):
        progress.save()


@pytest.mark.plain
def test_a_file_that_may_not_be_read_is_named(tmp_path, monkeypatch):
    def refused(*_):
        raise PermissionError(13, os.strerror(13))

    (tmp_path / "learning.json").touch()
    monkeypatch.setattr(Path, "read_bytes", refused)
    with pytest.raises(DataError, match=r"can be read; .*Permission denied. Use --progress"):
        load_progress(tmp_path / "learning.json")


@pytest.mark.plain
def test_a_file_that_cannot_be_put_aside_is_named(tmp_path, monkeypatch):
    def refused(*_):
        raise PermissionError(13, os.strerror(13))

    path = tmp_path / "learning.json"
    path.write_text("{")
    monkeypatch.setattr(Path, "rename", refused)
    with pytest.raises(DataError, match=r"put aside; .*Permission denied. Use --progress"):
        load_progress(path)
