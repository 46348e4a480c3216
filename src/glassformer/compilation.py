"""The package's C files, compiled once for each chip by the system's compiler.

Libraries are kept in the user's cache. Nothing here needs torch: while a command imports it,
`build_ahead` has the compiler at work.
"""

import atexit
import hashlib
import os
import platform
import shutil
import signal
import subprocess
import tempfile
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext, suppress
from contextvars import ContextVar
from functools import cache
from pathlib import Path
from typing import NamedTuple

from platformdirs import user_cache_path

FUNCTIONAL = Path(__file__).with_name("functional")
GENERATION = Path(__file__).with_name("generation")
PROCESSOR = FUNCTIONAL / "processor.c"  # part of every library
SHARED_FLAGS = ("-O3", "-std=gnu11", "-shared", "-fPIC")
LONGEST = 60  # seconds that a compiler may take


class Library(NamedTuple):
    """A C file, what it includes, and the flags it is compiled with."""

    source: Path
    included: tuple[Path, ...] = ()
    flags: tuple[str, ...] = ()


def _with_vectors(source: Path) -> Library:
    flags = ("-fno-math-errno", "-fno-trapping-math", "-Wno-psabi")
    return Library(source, (FUNCTIONAL / "vectors.h",), flags)


ATTENTION = _with_vectors(FUNCTIONAL / "backends" / "native_attention.c")
STATISTICS = _with_vectors(FUNCTIONAL / "statistics" / "kernel.c")
LOSS = _with_vectors(FUNCTIONAL.with_name("training") / "native_loss.c")
INT8 = Library(
    FUNCTIONAL / "quantized" / "kernel.c",
    tuple(sorted((FUNCTIONAL / "quantized").glob("*.[ch]"))),
    # Without contraction into fused products, a row is the same to the bit in any batch.
    ("-ffp-contract=off", "-fno-math-errno", "-fno-trapping-math"),
)
STACK = Library(
    GENERATION / "native_stack.c",
    (*sorted(GENERATION.glob("*.[ch]")), *INT8.included),
    ("-ffp-contract=fast", "-fno-math-errno", "-fno-trapping-math"),
)

_notice: ContextVar[Callable[[], AbstractContextManager[object]]] = ContextVar("notice")


@contextmanager
def notice_compilation(notice: Callable[[], AbstractContextManager[object]]) -> Iterator[None]:
    """Within, `notice()` is entered for as long as kernels are compiled."""
    token = _notice.set(notice)
    try:
        yield
    finally:
        _notice.reset(token)


def announce() -> AbstractContextManager[object]:
    """What is entered while kernels are compiled: whatever the caller asked for."""
    return _notice.get(nullcontext)()


def build(library: Library) -> Path:
    """The file of a library, compiled if that has not been done."""
    path, command = _plan(library)
    if not path.is_file():
        compiling = _ahead.pop(path, None) or _Compiling(command, path)
        with announce():
            compiling.finish()
    return path


def build_ahead(library: Library) -> None:
    """Start to compile a library that will be needed, if that has not been done."""
    with suppress(OSError):  # `build` will say so
        path, command = _plan(library)
        if not path.is_file() and path not in _ahead:
            _ahead[path] = _Compiling(command, path)


def _plan(library: Library) -> tuple[Path, list[str]]:
    """Where a library is kept, and the command for it; the file's name is still to come."""
    compiler = next(filter(None, map(shutil.which, (os.environ.get("CC", ""), "cc", "gcc"))), None)
    if compiler is None:
        raise FileNotFoundError("no C compiler")
    tuned = "-march=native" if platform.machine() in ("x86_64", "AMD64") else "-mcpu=native"
    flags = (*SHARED_FLAGS, *library.flags, tuned)
    texts = [each.read_bytes() for each in (library.source, PROCESSOR, *library.included)]
    key = repr((texts, compiler, flags, describe_chip()))
    name = f"{library.source.parent.name}-{hashlib.sha256(key.encode()).hexdigest()[:16]}.so"
    command = [compiler, *flags, str(library.source), str(PROCESSOR), "-lm", "-o"]
    return find_cache() / name, command


class _Compiling:
    """A compiler at work; what it makes is there whole or not at all."""

    def __init__(self, command: list[str], path: Path) -> None:
        self.path, self.command = path, command
        self.folder = Path(tempfile.mkdtemp(dir=path.parent, prefix="compiling-"))
        try:
            self.process = subprocess.Popen(
                [*command, str(self.folder / path.name)],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                env={**os.environ, "TMPDIR": str(self.folder)},
                start_new_session=True,  # with the programs that it starts: they end together
            )
        except BaseException:
            shutil.rmtree(self.folder, ignore_errors=True)
            raise

    def finish(self) -> None:
        """Wait for the compiler, and put its library where it belongs."""
        try:
            code = self.process.wait(LONGEST)
            if code:
                raise subprocess.CalledProcessError(code, self.command)
            (self.folder / self.path.name).replace(self.path)
        finally:
            self.stop()

    def stop(self) -> None:
        """End the compiler if it is still at work; nothing of it is left."""
        if self.process.poll() is None:
            if os.name == "posix":
                os.killpg(self.process.pid, signal.SIGKILL)
            else:
                self.process.kill()
            self.process.wait()
        shutil.rmtree(self.folder, ignore_errors=True)


_ahead: dict[Path, _Compiling] = {}


@atexit.register
def _stop_all() -> None:
    while _ahead:
        _ahead.popitem()[1].stop()


def _forget_all() -> None:
    _ahead.clear()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget_all)  # the compilers are its parent's


def find_cache() -> Path:
    """The user's folder for what is made once on a machine; a fresh one where it cannot be."""
    folder = user_cache_path("glassformer")
    try:
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)
    except OSError:
        folder = _make_folder()
    return folder


@cache
def _make_folder() -> Path:
    """One for this process."""
    return Path(tempfile.mkdtemp(prefix="glassformer-"))


def describe_chip() -> str:
    """What tells two chips apart that share a home folder."""
    with suppress(OSError):
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
        known = ("Features", "flags", "CPU part", "model name")
        return "".join(sorted({line for line in lines if line.startswith(known)}))
    return platform.processor() + platform.machine()
