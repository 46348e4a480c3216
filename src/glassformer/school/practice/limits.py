"""What learner's code may use: so much time and memory, its own file, and nothing else.

The audit hook here says in a sentence what was tried. It is a learning aid, not a security
boundary: code that calls C functions gets around it. What holds regardless is in `isolation`.
"""

import _thread
import os
import resource
import signal
import sys
import threading
from pathlib import Path
from types import FrameType
from typing import Any, NoReturn

MEMORY = 1 << 30  # bytes, on top of what torch takes
OUTPUT = 1 << 20  # bytes of prints
# The limit is one of computing. Code that only waits gets longer, because on a busy machine
# all code waits, and that is not the learner's mistake.
PATIENCE = 4
_CLOCKS = (
    (signal.ITIMER_PROF, signal.SIGPROF, 1),
    (signal.ITIMER_REAL, signal.SIGALRM, PATIENCE),
)
_WRITING = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_APPEND
_CHANGING = (
    "os.remove",
    "os.rename",
    "os.rmdir",
    "os.mkdir",
    "os.link",
    "os.symlink",
    "os.truncate",
    "os.chmod",
    "os.chown",
    "os.setxattr",
    "os.utime",
    "shutil.",
    "tempfile.",
)
_STARTING = (
    "os.system",
    "os.exec",
    "os.posix_spawn",
    "os.spawn",
    "os.fork",
    "os.kill",
    "subprocess.Popen",
    "signal.pthread_kill",
)
_NETWORK = ("socket.", "urllib.Request")
# What starts a thread, in the versions of Python; only some of them are audited.
_THREADS = ("start_new_thread", "start_new", "start_joinable_thread")


class TimeUp(BaseException):
    """The time is over; raised at whatever line is running."""


class Blocked(PermissionError):
    """Something outside of the exercise was touched."""

    def __init__(self, what: str) -> None:
        super().__init__(what)
        self.what = what


class AuditGuard:
    """Says no to files, processes and the network; remembers what was tried."""

    def __init__(self, closed: tuple[Path, ...]) -> None:
        self.closed = tuple(str(path) for path in closed)
        self.tried: list[str] = []
        self.is_on = False

    def __call__(self, event: str, args: tuple[Any, ...]) -> None:
        if self.is_on and (what := self._find_refusal(event, args)):
            self.refuse(what)

    def refuse(self, what: str) -> NoReturn:
        """Remember what was tried, and raise."""
        self.tried.append(what)
        raise Blocked(what)

    def _find_refusal(self, event: str, args: tuple[Any, ...]) -> str:
        if event == "open":
            path, mode, flags = args
            writes = any(c in (mode or "") for c in "wax+") or (flags or 0) & _WRITING
            if writes and path != os.devnull:
                return "files"
            if isinstance(path, str | bytes | os.PathLike) and self._is_closed(path):
                return "solutions"
        elif event in ("os.listdir", "os.scandir", "os.chdir") and self._is_closed(args[0]):
            return "solutions"
        elif event.startswith(_CHANGING):
            return "files"
        elif event.startswith(_STARTING):
            return "processes"
        elif event.startswith(_NETWORK):
            return "network"
        return ""

    def _is_closed(self, path: Any) -> bool:
        """Whether a path, or an open folder by its number, leads to what is closed."""
        try:
            if isinstance(path, int):
                path = Path(f"/proc/self/fd/{path}").readlink()
            return os.path.realpath(os.fsdecode(path or ".")).startswith(self.closed)
        except (OSError, TypeError, ValueError):
            return False


def apply_limits(seconds: float, space: int) -> None:
    """Apply the limits to this process, for good; `space` is what address_space said."""
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    resource.setrlimit(resource.RLIMIT_FSIZE, (0, 0))  # libraries open files past any audit
    # No more processes or threads; root is exempt, and then the filter of system calls refuses.
    resource.setrlimit(resource.RLIMIT_NPROC, (0, 0))
    most = space + MEMORY
    resource.setrlimit(resource.RLIMIT_AS, (most, most))
    most = int(seconds) + 2
    # The soft limit sends SIGXCPU, which tells why; the hard one SIGKILL, which does not.
    resource.setrlimit(resource.RLIMIT_CPU, (most, most + 2))
    start_clock(seconds)


def start_clock(seconds: float) -> None:
    """Raise TimeUp after so many seconds of computing, or PATIENCE times as many of waiting."""
    # Again and again, in case the first is swallowed by an `except:`.
    for timer, number, factor in _CLOCKS:
        signal.signal(number, _raise_time_up)
        signal.setitimer(timer, factor * seconds, 0.5)


def refuse_threads(watch: AuditGuard) -> None:
    """A mode of torch that stops forbidden calls holds for its own thread alone: so no others."""
    for name in _THREADS:
        for module, prefix in ((_thread, ""), (threading, "_")):
            if hasattr(module, prefix + name):
                setattr(module, prefix + name, lambda *_, **__: watch.refuse("processes"))


def stop_clock() -> None:
    """Stop the clocks: what follows is our own work."""
    for timer, _, _ in _CLOCKS:
        signal.setitimer(timer, 0)


def _raise_time_up(_signal: int, _frame: FrameType | None) -> None:
    raise TimeUp


def address_space() -> int:
    """Bytes of addresses that this process has already; torch's libraries alone take gigabytes."""
    try:
        pages = int(Path("/proc/self/statm").read_text("ascii").split()[0])
    except OSError:
        return 1 << 36  # no such file on macOS, which does not enforce this limit anyway
    return pages * os.sysconf("SC_PAGE_SIZE")


def forget_package(package: str) -> None:
    """Take a package out of the modules that `import` would find; what runs of it runs on."""
    for name in list(sys.modules):
        if name.split(".")[0] == package:
            del sys.modules[name]
