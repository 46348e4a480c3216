import os
from pathlib import Path

import pytest

from glassformer.errors import CheckpointError, ConfigError, DataError
from glassformer.parsing import parse_json, read_json, read_toml


def test_what_is_written_is_read(tmp_path: Path) -> None:
    (tmp_path / "a.json").write_text('\ufeff{"a": [1, {"b": "\\ud83d\\ude00"}]}', "utf-8")
    assert read_json(tmp_path / "a.json") == {"a": [1, {"b": "😀"}]}
    (tmp_path / "a.toml").write_text("[a]\nb = 1\n")
    assert read_toml(tmp_path / "a.toml") == {"a": {"b": 1}}


@pytest.mark.plain
@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("{", r"here is not readable JSON: Expecting property name"),
        ('{"a": 1, "a": 2}', r"it has the key 'a' twice"),
        ('{"a": {"b": 1, "b": 2}}', r"it has the key 'b' twice"),
        ("[" * 100_000, r"it is nested too deeply"),
        ("[" * 65 + "]" * 65, r"it is nested more than 64 levels deep"),
        ("1" * 5000, r"Exceeds the limit \(4300 digits\)"),
        ('["\\ud800"]', r"it has a lone surrogate"),
    ],
)
def test_json_that_is_refused(text: str, sentence: str) -> None:
    with pytest.raises(DataError, match=sentence):
        parse_json(text, "here", DataError)


def test_as_deep_as_anything_is() -> None:
    assert parse_json("[" * 64 + "]" * 64, "here")


@pytest.mark.plain
def test_files_that_are_refused(tmp_path: Path) -> None:
    with pytest.raises(CheckpointError, match=r"none cannot be read: No such file"):
        read_json(tmp_path / "none")
    (tmp_path / "list").write_text("[]")
    with pytest.raises(CheckpointError, match=r"must hold a JSON object; it holds a list"):
        read_json(tmp_path / "list")
    (tmp_path / "wide").write_bytes('{"a": 1}'.encode("utf-16"))
    with pytest.raises(CheckpointError, match=r"must be UTF-8 text; byte 0 is not"):
        read_json(tmp_path / "wide")
    with pytest.raises(CheckpointError, match=r"must have at most 10 bytes; it is larger"):
        (tmp_path / "large").write_text('{"a": 12345}')
        read_json(tmp_path / "large", most=10)
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(ConfigError, match=r"pipe cannot be read: it is not a regular file"):
        read_toml(tmp_path / "pipe")
