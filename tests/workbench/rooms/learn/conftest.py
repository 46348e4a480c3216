"""A learner of one's own: an empty data folder and an empty folder to work in."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from glassformer.workbench.rooms.learn.grading_thread import graders


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture(autouse=True, scope="package")
def last() -> Iterator[None]:
    """The process that grades ends with the tests."""
    yield
    for grader in graders:
        grader.close()
    graders.clear()
