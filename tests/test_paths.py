from pathlib import Path

import pytest

from glassformer.errors import CheckpointError, ConfigError
from glassformer.paths import is_file_name, user_path


def test_paths_that_people_write(tmp_path: Path, monkeypatch) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    assert user_path("~/a") == tmp_path / "a"
    assert user_path(tmp_path / "none") == tmp_path / "none"


@pytest.mark.plain
def test_paths_that_nobody_has(tmp_path: Path) -> None:
    with pytest.raises(
        CheckpointError, match=r"'~nosuchuser/a' starts with the home folder of a user"
    ):
        user_path("~nosuchuser/a")
    with pytest.raises(ConfigError, match=r"'x{200}…' cannot be a path: File name too long"):
        user_path("x" * 5000, ConfigError)
    with pytest.raises(CheckpointError, match=r"must not contain null characters"):
        user_path("a\0b")
    (tmp_path / "loop").symlink_to("loop")
    with pytest.raises(CheckpointError, match=r"cannot be a path: Too many levels"):
        user_path(tmp_path / "loop")


def test_names_of_files_beside_a_file() -> None:
    assert is_file_name("model-00001.safetensors") and is_file_name("我.json")
    for name in ("", ".", "..", "../a", "a/b", "/a", "a\0", "a\\b", "x" * 300, 3, None):
        assert not is_file_name(name)
