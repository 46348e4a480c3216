"""C files are compiled once, perhaps ahead; without a compiler there is no error."""

import os
import platform
import select
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from glassformer import compilation
from glassformer.compilation import Library, build, build_ahead, notice_compilation
from glassformer.functional.native_library import load_library
from glassformer.functional.quantized import kernel

needs_compiler = pytest.mark.skipif(shutil.which("cc") is None, reason="no C compiler")
posix = pytest.mark.skipif(os.name != "posix", reason="a compiler that is a shell script")


@pytest.fixture
def fresh(monkeypatch, tmp_path: Path) -> Iterator[Path]:
    """An empty cache, and nothing found yet."""
    monkeypatch.setattr(compilation, "user_cache_path", lambda _: tmp_path / "cache")
    monkeypatch.setattr(compilation, "_ahead", {})
    kernel.find_kernel.cache_clear()
    yield tmp_path / "cache"
    compilation._stop_all()
    kernel.find_kernel.cache_clear()


@pytest.fixture
def compiler(monkeypatch, tmp_path: Path) -> Path:
    """One that writes what is no library, and a line for each call."""
    return make_compiler(monkeypatch, tmp_path, 'for last; do :; done; echo "none" > "$last"')


@pytest.fixture
def waiting(monkeypatch, tmp_path: Path) -> Path:
    """The same, but it does not begin before there is a file "go"."""
    wait = f'while [ ! -e "{tmp_path}/go" ]; do sleep 0.02; done'
    script = f'{wait}; for last; do :; done; echo "none" > "$last"'
    return make_compiler(monkeypatch, tmp_path, script)


def make_compiler(monkeypatch, folder: Path, script: str) -> Path:
    """A shell script in place of the compiler; the file to which it writes a line for each call."""
    program, calls = folder / "cc", folder / "calls"
    program.write_text(f'#!/bin/sh\necho "$@" >> {calls}\n{script}\n')
    program.chmod(0o700)
    monkeypatch.setenv("CC", str(program))
    return calls


def make_library(folder: Path, text: str = "int one(void) { return 1; }") -> Library:
    (folder / "one.c").write_text(text)
    return Library(folder / "one.c")


@needs_compiler
def test_it_is_built_once(fresh: Path, monkeypatch) -> None:
    assert kernel.find_kernel() is not None
    (built,) = fresh.iterdir()
    assert built.suffix == ".so"
    kernel.find_kernel.cache_clear()

    def refuse(*_args, **_options):
        raise AssertionError("built again")

    monkeypatch.setattr(compilation.subprocess, "Popen", refuse)
    build_ahead(compilation.INT8)
    assert kernel.find_kernel() is not None


def test_no_compiler(fresh: Path, monkeypatch) -> None:
    monkeypatch.setattr(compilation.shutil, "which", lambda _: None)
    build_ahead(compilation.INT8)
    assert kernel.find_kernel() is None


@pytest.mark.parametrize("is_ahead", [False, True])
def test_a_compiler_that_fails(is_ahead: bool, fresh: Path, monkeypatch) -> None:
    monkeypatch.setenv("CC", shutil.which("false"))
    if is_ahead:
        build_ahead(compilation.INT8)
    assert kernel.find_kernel() is None
    assert not list(fresh.iterdir())


@posix
def test_a_compiler_that_never_ends(fresh: Path, monkeypatch, tmp_path: Path) -> None:
    make_compiler(monkeypatch, tmp_path, "exec sleep 60")
    monkeypatch.setattr(compilation, "LONGEST", 0.2)
    with pytest.raises(subprocess.TimeoutExpired):
        build(make_library(tmp_path))
    assert load_library(make_library(tmp_path)) is None
    assert not list(fresh.iterdir())


def test_a_program_that_does_not_start(fresh: Path, monkeypatch, tmp_path: Path) -> None:
    def refuse(*_args, **_options):
        raise PermissionError("no programs")

    monkeypatch.setattr(compilation.subprocess, "Popen", refuse)
    monkeypatch.setattr(compilation.shutil, "which", lambda _: "/usr/bin/cc")
    build_ahead(make_library(tmp_path))
    assert load_library(make_library(tmp_path)) is None
    assert not list(fresh.iterdir())


@needs_compiler
def test_a_cache_that_cannot_be_written(fresh: Path, monkeypatch, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    monkeypatch.setattr(compilation, "user_cache_path", lambda _: tmp_path / "file" / "cache")
    monkeypatch.setattr(compilation.tempfile, "tempdir", str(tmp_path))
    compilation._make_folder.cache_clear()
    build_ahead(compilation.INT8)
    assert kernel.find_kernel() is not None
    compilation._make_folder.cache_clear()


@posix
def test_a_changed_file_is_built_again(fresh: Path, compiler: Path, tmp_path: Path) -> None:
    source, included = make_library(tmp_path).source, tmp_path / "two.c"
    for text in ("", "/* another */"):
        included.write_text(text)
        for flags in ((), ("-Wall",), ()):
            assert load_library(Library(source, (included,), flags)) is None
    assert len(compiler.read_text().splitlines()) == 4


@posix
def test_another_chip_has_another_kernel(fresh: Path, compiler: Path, monkeypatch) -> None:
    for chip in ("one", "another"):
        monkeypatch.setattr(compilation, "describe_chip", lambda chip=chip: chip)
        kernel.find_kernel.cache_clear()
        assert kernel.find_kernel() is None  # what was built cannot be loaded
    assert len(compiler.read_text().splitlines()) == len(list(fresh.iterdir())) == 2


@needs_compiler
@pytest.mark.skipif(platform.machine() != "x86_64", reason="checked on x86")
def test_instructions_that_the_processor_lacks(fresh: Path, tmp_path: Path) -> None:
    """FMA4 was in a few processors of one maker, until 2017."""
    library = make_library(tmp_path)
    assert load_library(library) is not None
    assert load_library(library._replace(flags=("-D__FMA4__",))) is None


@posix
def test_what_was_begun_ahead_is_waited_for(fresh: Path, waiting: Path, tmp_path: Path) -> None:
    library = make_library(tmp_path)
    for _ in range(3):
        build_ahead(library)  # and comes back, although the compiler waits
    (tmp_path / "go").touch()
    assert build(library).read_text() == "none\n"
    build_ahead(library)
    assert len(waiting.read_text().splitlines()) == 1
    assert [path.suffix for path in fresh.iterdir()] == [".so"]


@posix
def test_the_end_of_a_program_ends_its_compiler(monkeypatch, tmp_path: Path) -> None:
    """And what the compiler has started: that closes the pipe, which nobody else has open."""
    os.mkfifo(tmp_path / "pipe")
    make_compiler(
        monkeypatch, tmp_path, f"exec 3> {tmp_path}/pipe; sleep 60 & touch {tmp_path}/on; wait"
    )
    program = f"""
import time
from pathlib import Path
from glassformer.compilation import STACK, build_ahead
build_ahead(STACK)
while not Path({str(tmp_path / "on")!r}).exists():
    time.sleep(0.01)
"""
    pipe = os.open(tmp_path / "pipe", os.O_RDONLY | os.O_NONBLOCK)
    subprocess.run(
        [sys.executable, "-c", program],
        check=True,
        timeout=50,  # less than the compiler would take
        env={**os.environ, "XDG_CACHE_HOME": str(tmp_path / "home"), "HOME": str(tmp_path)},
    )
    ends = select.poll()
    ends.register(pipe, select.POLLHUP)
    assert ends.poll(20_000)
    os.close(pipe)
    assert not list(tmp_path.rglob("compiling-*"))


@posix
def test_a_forked_process_leaves_the_compiler_alone(fresh: Path, waiting: Path, tmp_path: Path):
    library = make_library(tmp_path)
    build_ahead(library)
    if not (child := os.fork()):
        compilation._stop_all()
        os._exit(0)
    os.waitpid(child, 0)
    (tmp_path / "go").touch()
    assert build(library).read_text() == "none\n"


def test_neither_torch_nor_the_rest_is_imported_for_it() -> None:
    program = "import sys, glassformer.compilation; sys.exit('torch' in sys.modules)"
    subprocess.run([sys.executable, "-c", program], check=True)


@posix
@pytest.mark.parametrize("is_ahead", [False, True])
def test_a_notice_while_one_waits(is_ahead: bool, fresh: Path, compiler: Path, tmp_path) -> None:
    said = []

    @contextmanager
    def notice() -> Iterator[None]:
        said.append("begins")
        yield
        said.append("ends")

    library = make_library(tmp_path)
    if is_ahead:
        build_ahead(library)
    with notice_compilation(notice):
        for _ in range(2):
            build(library)
    build(library._replace(flags=("-Wall",)))  # nobody listens any more
    assert said == ["begins", "ends"]
