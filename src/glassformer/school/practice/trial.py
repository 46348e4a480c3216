"""One grading: a process for the learner's code, and beside it the judge who waits for it."""

import contextlib
import json
import os
import selectors
import signal
import sys
import tempfile
import time
import traceback
from collections.abc import Callable, Sequence
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import Any

from glassformer.school.practice.exercise import Exercise
from glassformer.school.practice.judge import Judge
from glassformer.school.practice.limits import OUTPUT, PATIENCE
from glassformer.school.practice.messages import (
    MOST_SENT,
    Interference,
    Transcript,
    read_outcome,
    read_transcript,
)
from glassformer.school.practice.outcome import Outcome
from glassformer.school.practice.report import GradingReport
from glassformer.school.practice.runner import make_sender, run_learner
from glassformer.school.practice.stops import report_stop

_PREPARING = 30.0  # seconds until learner's code begins to run
_GRACE = 3.0  # seconds beyond the limit, for code that swallows the first alarm
_MOST_OPEN = 1024  # descriptors
_MOST_SHOWN = 4000  # characters of what was printed
_UNTRACED = -1


def grade_here(exercise: Exercise, path: Path, source: str, seed: int) -> GradingReport:
    """Grade a source; this process becomes the judge and forks the learner's.

    Call it in a process that has run nothing of torch yet: threads do not survive a fork.
    """
    begun = time.perf_counter()
    if missing := exercise.missing_packages():
        return report_stop(exercise, {"stop": "needs", "message": ", ".join(missing)})
    with (
        tempfile.TemporaryDirectory() as folder,
        LearnerProcess(exercise, path, source, seed, folder) as learner,
        # Waits, and runs only if a line must be found: now neither knows a solution yet.
        LearnerProcess(exercise, path, source, seed, folder) as second,
        # As well, if no known mistake explains the results: it looks for one change that repairs.
        LearnerProcess(exercise, path, source, seed, folder) as third,
    ):
        # Who ends the judge ends these too, which are in groups of their own.
        processes = (learner, second, third)
        signal.signal(signal.SIGTERM, lambda *_: ([each.kill() for each in processes], os._exit(1)))
        learner.start()
        judge = Judge(exercise, source, seed)
        sent = learner.transcript(len(judge.cases))
        got, stop = sent.got, sent.stop
        if any(Path(folder).iterdir()):
            line = next((each.line for each in got if each.failure), None)
            got, stop = [], {"stop": "blocked", "message": "files", "line": line}

        def retrace(number: int) -> Transcript:
            second.start(number)
            return second.transcript(len(judge.cases))

        def repair(number: int, expected: Sequence[Outcome]) -> Callable[[], Transcript]:
            third.start(number, expected)  # works while the judge looks for a name
            return lambda: third.transcript(len(judge.cases))

        report = judge.report(got, stop, retrace, repair)
    text = learner.printed
    return replace(
        report,
        printed=text if len(text) <= _MOST_SHOWN else f"…{text[-_MOST_SHOWN:]}",
        seconds=time.perf_counter() - begun,
        isolation=sent.isolation,
    )


class LearnerProcess:
    """A process that runs a learner's file on request and is ended afterwards."""

    def __init__(self, exercise: Exercise, path: Path, source: str, seed: int, folder: str) -> None:
        self.printed = ""
        self._seconds = PATIENCE * exercise.seconds
        self._deadline = 0.0
        start_end, self._start_end = os.pipe()
        self._message_end, send_end = os.pipe()
        self._print_end, output_end = os.pipe()
        self._pid = os.fork()
        if self._pid == 0:
            _run_learner_process(
                exercise, path, source, seed, folder, (start_end, send_end, output_end)
            )
        for end in (start_end, send_end, output_end):
            os.close(end)

    def start(self, traced: int | None = None, expected: Sequence[Outcome] = ()) -> None:
        """Run the file; with a number, only up to that case, which is followed step by step."""
        self._deadline = time.perf_counter() + _PREPARING
        order = {
            "traced": _UNTRACED if traced is None else traced,
            "expected": [outcome.as_data() for outcome in expected],
        }
        data = json.dumps(order).encode()
        with contextlib.suppress(BrokenPipeError):  # if it is gone already, it sends nothing
            while data:
                data = data[os.write(self._start_end, data) :]
        os.close(self._start_end)
        self._start_end = -1

    def transcript(self, n_cases: int) -> Transcript:
        """What it sent, until it ended or was ended; why it stopped is part of it."""
        sent, printed, cut = self._collect()
        status, stayed = self._end()
        self.printed = printed.decode("utf-8", errors="replace")
        try:
            transcript = read_transcript(sent, n_cases)
        except Interference:
            return Transcript(stop={"stop": "interfered"})
        if not sent and not cut:
            raise RuntimeError(f"The checks do not start: {self.printed}")
        if cut in ("output", "interfered"):
            transcript.stop = {"stop": cut}
        elif transcript.stop is None and not transcript.done:
            transcript.stop = _explain_death(status, "time" if stayed else cut, self.printed)
        return transcript

    def _collect(self) -> tuple[bytes, bytes, str]:
        """What was sent and what was printed, until both end, or the time or the patience does."""
        ends = (self._message_end, self._print_end)
        parts = {end: bytearray() for end in ends}
        cut = ""
        with selectors.DefaultSelector() as selector:
            for end in ends:
                selector.register(end, selectors.EVENT_READ)
            while selector.get_map() and not cut:
                ready = selector.select(max(self._deadline - time.perf_counter(), 0))
                if not ready:
                    cut = "time"
                for key, _ in ready:
                    data = os.read(key.fd, 1 << 16)
                    if key.fd == self._message_end and not parts[key.fd]:
                        # Now the learner's time begins, however busy the machine has been.
                        self._deadline = time.perf_counter() + self._seconds + _GRACE
                    parts[key.fd] += data
                    if not data:
                        selector.unregister(key.fd)
                if len(parts[self._print_end]) > OUTPUT:
                    cut = "output"
                if len(parts[self._message_end]) > MOST_SENT:
                    cut = "interfered"
        if cut:
            self.kill()
        return bytes(parts[self._message_end]), bytes(parts[self._print_end][:OUTPUT]), cut

    def _end(self) -> tuple[int, bool]:
        """How it ended, and whether it had to be: it may stay though it has closed its pipes."""
        done, status = os.waitpid(self._pid, os.WNOHANG)
        while not done and time.perf_counter() < self._deadline:
            time.sleep(0.01)
            done, status = os.waitpid(self._pid, os.WNOHANG)
        self.kill()  # and what it may have left running
        if not done:
            _, status = os.waitpid(self._pid, 0)
        self._pid = 0
        return status, not done

    def kill(self) -> None:
        """End it, and the group that it is."""
        if not self._pid:
            return
        try:
            os.killpg(self._pid, signal.SIGKILL)
        except ProcessLookupError:  # it has not yet become a group, or is gone
            with contextlib.suppress(ProcessLookupError):
                os.kill(self._pid, signal.SIGKILL)
        except PermissionError:
            os.kill(self._pid, signal.SIGKILL)

    def __enter__(self) -> "LearnerProcess":
        return self

    def __exit__(self, *_: object) -> None:
        if self._pid:
            self.kill()
            os.waitpid(self._pid, 0)
            self._pid = 0
        for end in (self._start_end, self._message_end, self._print_end):
            if end >= 0:
                os.close(end)


def _run_learner_process(
    exercise: Exercise,
    path: Path,
    source: str,
    seed: int,
    folder: str,
    ends: tuple[int, int, int],
) -> None:
    """The life of the learner's process; it never returns."""
    start_end, send_end, output_end = ends
    code = 1
    try:
        os.setsid()  # Ctrl-C is for the terminal's program; and the group can be ended as one
        os.chdir(folder)
        # Nothing of what the judge and the server talk through is left open here.
        edges = [2, *sorted(ends), _MOST_OPEN]
        for before, after in pairwise(edges):
            os.closerange(before + 1, after)
        nothing = os.open(os.devnull, os.O_RDONLY)
        os.dup2(nothing, 0)
        os.dup2(output_end, 1)
        os.dup2(output_end, 2)
        os.close(output_end)
        os.close(nothing)
        sys.stdin = os.fdopen(0, "r", closefd=False)
        sys.stdout = os.fdopen(1, "w", encoding="utf-8", errors="replace", closefd=False)
        sys.stderr = os.fdopen(2, "w", encoding="utf-8", errors="replace", closefd=False)
        if sent := _read_all(start_end):  # else it is not needed any more
            os.close(start_end)
            order = json.loads(sent)
            expected = [read_outcome(each) for each in order["expected"]]
            send = make_sender(send_end)
            traced = order["traced"]
            run_learner(exercise, path, source, seed, send, traced=traced, expected=expected)
        code = 0
    except BaseException:
        traceback.print_exc()  # nobody reads it but the judge
    finally:
        with contextlib.suppress(Exception):
            sys.stdout.flush()
            sys.stderr.flush()
        os._exit(code)


def _read_all(descriptor: int) -> bytes:
    """All that is written to a pipe until it is closed."""
    parts = bytearray()
    while data := os.read(descriptor, 1 << 16):
        parts += data
    return bytes(parts)


def _explain_death(status: int, cut: str, printed: str) -> dict[str, Any]:
    """Why a process that said nothing more is gone."""
    if cut == "time" or (os.WIFSIGNALED(status) and os.WTERMSIG(status) == signal.SIGXCPU):
        return {"stop": "time"}
    if "bad_alloc" in printed or "MemoryError" in printed:
        return {"stop": "memory"}
    if os.WIFSIGNALED(status):
        return {"stop": "died", "message": signal.Signals(os.WTERMSIG(status)).name}
    return {"stop": "exit"}
