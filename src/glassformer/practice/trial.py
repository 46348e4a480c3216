"""One grading: a process for the learner's code, and beside it the judge who waits for it."""

import json
import os
import selectors
import signal
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from glassformer.practice.exercise import Exercise
from glassformer.practice.judge import Judge, halted
from glassformer.practice.limits import OUTPUT
from glassformer.practice.outcome import Outcome
from glassformer.practice.report import Report
from glassformer.practice.runner import run_learner, sender

_GRACE = 3.0  # seconds beyond the limit, for code that swallows the first alarm
_MOST_OPEN = 1024  # descriptors
_MOST_SHOWN = 4000  # characters of what was printed


def grade_here(exercise: Exercise, path: Path, source: str, seed: int) -> Report:
    """Grade a source; this process becomes the judge and forks the learner's.

    Call it in a process that has run nothing of torch yet: threads do not survive a fork.
    """
    begun = time.perf_counter()
    if missing := exercise.missing():
        return halted(exercise, {"stop": "needs", "message": ", ".join(missing)})
    with tempfile.TemporaryDirectory() as folder:
        got, stop, text, judge = _run(exercise, path, source, seed, Path(folder))
        if any(Path(folder).iterdir()):
            line = next((each.line for each in got if each.failure), None)
            got, stop = [], {"stop": "blocked", "message": "files", "line": line}
    report = judge.report(got, stop)
    shown = text if len(text) <= _MOST_SHOWN else f"…{text[-_MOST_SHOWN:]}"
    data = {**report.as_data(), "printed": shown, "seconds": time.perf_counter() - begun}
    return Report.from_data(data)


def _run(
    exercise: Exercise, path: Path, source: str, seed: int, folder: Path
) -> tuple[list[Outcome], dict[str, Any] | None, str, Judge]:
    """The learner's outcomes, why it stopped if it did, what it printed; and the judge."""
    begun = time.perf_counter()
    message_end, send_end = os.pipe()
    print_end, output_end = os.pipe()
    pid = os.fork()
    if pid == 0:
        _be_learner(exercise, path, source, seed, folder, send_end, output_end)
    # Who ends the judge ends the learner's process, which is in a group of its own.
    signal.signal(signal.SIGTERM, lambda *_: (_kill(pid), os._exit(1)))
    os.close(send_end)
    os.close(output_end)
    # Made while the other process runs the learner's code, and only then: it knows no solution.
    judge = Judge(exercise, source, seed)
    deadline = begun + exercise.seconds + _GRACE
    sent, printed, cut = _collect(pid, message_end, print_end, deadline)
    status, stayed = _end(pid, deadline)
    got, stop = _read(sent)
    text = printed.decode("utf-8", errors="replace")
    if cut == "output":
        stop = {"stop": "output"}
    elif stop is None and len(got) < len(judge.cases):
        stop = _death(status, "time" if stayed else cut, text)
    return got, stop, text, judge


def _be_learner(
    exercise: Exercise,
    path: Path,
    source: str,
    seed: int,
    folder: Path,
    send_end: int,
    output_end: int,
) -> None:
    """The life of the learner's process; it never returns."""
    code = 1
    try:
        os.setsid()  # Ctrl-C is for the terminal's program; and the group can be ended as one
        os.chdir(folder)
        # Nothing of what the judge and the server talk through is left open here.
        low, high = sorted((send_end, output_end))
        for first, last in ((3, low), (low + 1, high), (high + 1, _MOST_OPEN)):
            os.closerange(first, last)
        nothing = os.open(os.devnull, os.O_RDONLY)
        os.dup2(nothing, 0)
        os.dup2(output_end, 1)
        os.dup2(output_end, 2)
        sys.stdin = os.fdopen(0, "r", closefd=False)
        sys.stdout = os.fdopen(1, "w", encoding="utf-8", errors="replace", closefd=False)
        sys.stderr = os.fdopen(2, "w", encoding="utf-8", errors="replace", closefd=False)
        run_learner(exercise, path, source, seed, sender(send_end))
        code = 0
        sys.stdout.flush()
        sys.stderr.flush()
    finally:
        os._exit(code)


def _collect(
    pid: int, message_end: int, print_end: int, deadline: float
) -> tuple[bytes, bytes, str]:
    """What was sent and what was printed, until both end, or the time or the patience does."""
    parts: dict[int, bytearray] = {message_end: bytearray(), print_end: bytearray()}
    cut = ""
    with selectors.DefaultSelector() as selector:
        for end in parts:
            selector.register(end, selectors.EVENT_READ)
        while selector.get_map() and not cut:
            left = deadline - time.perf_counter()
            ready = selector.select(max(left, 0))
            if not ready:
                cut = "time"
            for key, _ in ready:
                data = os.read(key.fd, 1 << 16)
                parts[key.fd] += data
                if not data:
                    selector.unregister(key.fd)
            if len(parts[print_end]) > OUTPUT:
                cut = "output"
    if cut:
        _kill(pid)
    os.close(message_end)
    os.close(print_end)
    return bytes(parts[message_end]), bytes(parts[print_end][:OUTPUT]), cut


def _kill(pid: int) -> None:
    try:
        os.killpg(pid, signal.SIGKILL)
    except ProcessLookupError:
        pass
    except PermissionError:  # it has not yet become a group of its own
        os.kill(pid, signal.SIGKILL)


def _end(pid: int, deadline: float) -> tuple[int, bool]:
    """How it ended, and whether it had to be ended: it may stay though it has closed its pipes."""
    done, status = os.waitpid(pid, os.WNOHANG)
    while not done and time.perf_counter() < deadline:
        time.sleep(0.01)
        done, status = os.waitpid(pid, os.WNOHANG)
    _kill(pid)  # and what it may have left running
    return (status, False) if done else (os.waitpid(pid, 0)[1], True)


def _read(sent: bytes) -> tuple[list[Outcome], dict[str, Any] | None]:
    got: list[Outcome] = []
    stop: dict[str, Any] | None = None
    begun = False
    for line in sent.splitlines():
        try:
            message = json.loads(line)
            if "case" in message:
                del message["case"]
                got.append(Outcome.from_data(message))
            elif "begin" in message:
                begun = True
            elif "stop" in message:
                stop = {**message, "begun": begun}
        except (ValueError, TypeError, KeyError):
            break  # the last line of a process that was ended while it wrote, or none of ours
    return got, stop


def _death(status: int, cut: str, printed: str) -> dict[str, Any]:
    """Why a process that said nothing more is gone."""
    if cut == "time" or (os.WIFSIGNALED(status) and os.WTERMSIG(status) == signal.SIGXCPU):
        return {"stop": "time"}
    if "bad_alloc" in printed or "MemoryError" in printed:
        return {"stop": "memory"}
    if os.WIFSIGNALED(status):
        return {"stop": "died", "message": signal.Signals(os.WTERMSIG(status)).name}
    return {"stop": "exit"}
