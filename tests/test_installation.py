"""The command that installs an extra fits how glassformer was installed."""

import importlib.metadata
import json
import re
from pathlib import Path

import pytest

from glassformer import installation
from glassformer.installation import editable_clone, install_command

ROOT = Path(__file__).parent.parent
WHEEL = {"url": "file:///tmp/glassformer-0.1.0-py3-none-any.whl", "archive_info": {}}


@pytest.fixture
def installed(monkeypatch):
    """Pretend that pip recorded this origin."""

    def record(origin):
        class Recorded:
            def read_text(self, name):
                assert name == "direct_url.json"
                return None if origin is None else json.dumps(origin)

        monkeypatch.setattr(installation, "distribution", lambda _: Recorded())
        editable_clone.cache_clear()

    yield record
    editable_clone.cache_clear()


@pytest.mark.parametrize("origin", [None, WHEEL, {"url": "file:///tmp/a", "dir_info": {}}])
def test_from_a_wheel_it_is_installed_by_name(installed, origin):
    installed(origin)
    assert install_command("figures") == "pip install 'glassformer[figures]'"


def test_from_a_clone_it_is_installed_from_the_clone(installed, tmp_path, monkeypatch):
    clone = tmp_path / "my clone"
    clone.mkdir()
    installed({"url": clone.as_uri(), "dir_info": {"editable": True}})
    assert install_command("figures") == f"pip install -e '{clone}[figures]'"
    monkeypatch.chdir(clone)
    assert install_command("figures") == "pip install -e '.[figures]'"


def test_without_an_installation_it_is_the_clone_on_the_path(monkeypatch):
    def missing(name):
        raise importlib.metadata.PackageNotFoundError(name)

    monkeypatch.setattr(installation, "distribution", missing)
    editable_clone.cache_clear()
    try:
        assert editable_clone() == ROOT
    finally:
        editable_clone.cache_clear()


def test_every_extra_that_a_sentence_names_exists():
    """And nobody writes the command by hand: `install_command` decides."""
    project = (ROOT / "pyproject.toml").read_text("utf-8")
    extras = set(
        re.findall(r"^(\w+) = \[", project.split("[project.optional-dependencies]")[1], re.M)
    )
    named = set()
    for file in (ROOT / "src/glassformer").rglob("*.py"):
        text = file.read_text("utf-8")
        named |= set(re.findall(r"install_command\([\"'](\w+)[\"']\)", text))
        if file.name != "installation.py":
            assert "glassformer[" not in text, file
    assert named and named <= extras
