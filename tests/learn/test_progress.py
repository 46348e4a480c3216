"""The progress file: whole, and never lost."""

import json
import os
from datetime import date
from pathlib import Path

import pytest

from glassformer.errors import ConfigError, DataError
from glassformer.learn.progress import default_path, load_progress
from glassformer.learn.repetition import answered

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


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (b"", "damaged"),
        (b"{", "damaged"),
        (b"\xff\xfe", "damaged"),
        (b"[]", "damaged"),
        (b"null", "damaged"),
        (b'{"version": 1}', "damaged"),
        (b'{"version": 1, "read": {}, "cards": {"a": {"due": "soon"}}}', "damaged"),
        (b'{"version": 1, "read": {"masks": "when"}, "cards": {}}', "damaged"),
        (b'{"version": 1, "read": {"masks": 3}, "cards": {}}', "damaged"),
        (b'{"version": 1, "read": [], "cards": {}}', "damaged"),
        (b"[" * 100_000, "damaged"),
        (b'{"version": 2, "new": true}', "other-version"),
        (b'{"version": "1"}', "other-version"),
    ],
)
def test_what_cannot_be_read_is_kept_aside(tmp_path, content, reason):
    path = tmp_path / "learning.json"
    path.write_bytes(content)
    progress = load_progress(path)
    assert progress.kept_aside == tmp_path / f"learning.json.{reason}-1"
    assert progress.kept_aside.read_bytes() == content
    assert not path.exists()
    progress.save()
    path.write_bytes(content)
    assert load_progress(path).kept_aside == tmp_path / f"learning.json.{reason}-2"


def test_a_file_is_readable_json(tmp_path):
    progress = load_progress(tmp_path / "p.json")
    progress.save()
    assert json.loads((tmp_path / "p.json").read_text()) == {"version": 1, "read": {}, "cards": {}}


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
def test_a_folder_is_refused(tmp_path):
    with pytest.raises(ConfigError, match=r"kept in a file; .* is a folder"):
        load_progress(tmp_path)


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

    monkeypatch.setattr(Path, "read_text", refused)
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
