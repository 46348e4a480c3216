"""The C kernel is built once, and its absence is no error."""

import platform
import shutil
from pathlib import Path

import pytest

from glassformer.functional import native_library
from glassformer.functional.quantized import kernel

needs_compiler = pytest.mark.skipif(shutil.which("cc") is None, reason="no C compiler")


@pytest.fixture
def fresh(monkeypatch, tmp_path: Path) -> Path:
    """An empty cache, and nothing found yet."""
    monkeypatch.setattr(native_library, "user_cache_path", lambda _: tmp_path / "cache")
    kernel.find_kernel.cache_clear()
    yield tmp_path / "cache"
    kernel.find_kernel.cache_clear()


@pytest.fixture
def commands(monkeypatch) -> list[list[str]]:
    """The commands for a compiler that builds nothing of use."""
    given = []

    def run(command, **_options) -> None:
        given.append(command)
        Path(command[command.index("-o") + 1]).write_bytes(b"not a library")

    monkeypatch.setattr(native_library.shutil, "which", lambda _: "/usr/bin/cc")
    monkeypatch.setattr(native_library.subprocess, "run", run)
    return given


@needs_compiler
def test_it_is_built_once(fresh: Path, monkeypatch) -> None:
    assert kernel.find_kernel() is not None
    (built,) = fresh.iterdir()
    assert built.suffix == ".so"
    kernel.find_kernel.cache_clear()

    def refuse(*_args, **_options):
        raise AssertionError("built again")

    monkeypatch.setattr(native_library.subprocess, "run", refuse)
    assert kernel.find_kernel() is not None


def test_no_compiler(fresh: Path, monkeypatch) -> None:
    monkeypatch.setattr(native_library.shutil, "which", lambda _: None)
    assert kernel.find_kernel() is None


def test_a_compiler_that_fails(fresh: Path, monkeypatch) -> None:
    monkeypatch.setenv("CC", shutil.which("false"))
    assert kernel.find_kernel() is None
    assert not list(fresh.iterdir())


@needs_compiler
def test_a_cache_that_cannot_be_written(fresh: Path, monkeypatch, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    monkeypatch.setattr(native_library, "user_cache_path", lambda _: tmp_path / "file" / "cache")
    monkeypatch.setattr(native_library.tempfile, "tempdir", str(tmp_path))
    assert kernel.find_kernel() is not None


def test_a_changed_file_is_built_again(fresh: Path, commands: list, tmp_path: Path) -> None:
    source, included = tmp_path / "one.c", tmp_path / "two.c"
    source.write_text("int one(void) { return 1; }")
    for text in ("", "/* another */"):
        included.write_text(text)
        for flags in ((), ("-Wall",), ()):
            assert native_library.load_library(source, flags, included=(included,)) is None
    assert len(commands) == 4


def test_another_chip_has_another_kernel(fresh: Path, commands: list, monkeypatch) -> None:
    for chip in ("one", "another"):
        monkeypatch.setattr(native_library, "describe_chip", lambda chip=chip: chip)
        kernel.find_kernel.cache_clear()
        assert kernel.find_kernel() is None  # what was built cannot be loaded
    assert len(commands) == len(list(fresh.iterdir())) == 2


@needs_compiler
@pytest.mark.skipif(platform.machine() != "x86_64", reason="checked on x86")
def test_instructions_that_the_processor_lacks(fresh: Path, tmp_path: Path) -> None:
    """FMA4 was in a few processors of one maker, until 2017."""
    source = tmp_path / "one.c"
    source.write_text("int one(void) { return 1; }")
    assert native_library.load_library(source, ()) is not None
    assert native_library.load_library(source, ("-D__FMA4__",)) is None
