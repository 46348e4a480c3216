"""The interface of grading: a file in, a report out."""

import contextlib
import json
import os
import secrets
import signal
import stat
import subprocess
import sys
from collections.abc import Sequence
from errno import EFBIG, EINVAL, EISDIR
from pathlib import Path
from threading import Lock
from types import TracebackType
from typing import Any

from glassformer.errors import GlassformerError
from glassformer.school.practice.exercise import Exercise
from glassformer.school.practice.report import SOLUTION, FaultTrial, FaultTrials, GradingReport
from glassformer.school.practice.stops import report_stop

_MOST_SOURCE = 1 << 20
# Small arrays; and a learner's process may start no threads.
_ONE_THREAD = dict.fromkeys(
    ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "VECLIB_MAXIMUM_THREADS"), "1"
)


class GradingError(GlassformerError, RuntimeError):
    """An exercise of ours that does not work, or a machine on which grading cannot."""


class Grader:
    """Grades files one after the other, each in processes of its own.

    with Grader() as grader:
        report = grader.grade(find_exercise("attention"), Path("05_attention.py"))
    """

    def __init__(self) -> None:
        if not hasattr(os, "fork"):
            raise GradingError(
                "Grading needs a system that can fork a process; got "
                f"{sys.platform}. Use Linux, macOS, or the Windows Subsystem for Linux."
            )
        self._lock = Lock()
        self._closed = False
        self._server = self._start()

    def _start(self) -> "subprocess.Popen[str]":
        # -P: a file torch.py in the learner's folder must not shadow torch.
        words = [sys.executable, "-P", str(Path(__file__).with_name("bootstrap.py"))]
        return subprocess.Popen(
            words,
            env={**os.environ, **_ONE_THREAD},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            encoding="utf-8",
            start_new_session=True,  # Ctrl-C is for us, not for it
        )

    def grade(self, exercise: Exercise, path: Path) -> GradingReport:
        """Grade a learner's file as it is now."""
        try:
            source = _read_source(path)
        except FileNotFoundError:
            return report_stop(exercise, {"stop": "absent", "message": path.name})
        except OSError as error:
            return report_stop(exercise, {"stop": "unreadable", "message": error.strerror})
        except UnicodeDecodeError as error:
            line = error.object[: error.start].count(b"\n") + 1
            message = f"0x{error.object[error.start]:02x}"
            return report_stop(exercise, {"stop": "unreadable", "message": message, "line": line})
        return self.grade_source(exercise, source, path)

    def grade_source(
        self, exercise: Exercise, source: str, path: Path | None = None, *, seed: int | None = None
    ) -> GradingReport:
        """Grade a text; every time with other numbers."""
        request = {
            "path": str(path or exercise.file_name),
            "source": source,
            "seed": draw_seed() if seed is None else seed,
        }
        answer = self._ask_about(exercise, request)
        if "died" in answer:
            return report_stop(exercise, _explain_end(answer["died"]))
        try:
            return GradingReport.from_data(answer["report"])
        except (KeyError, TypeError, AttributeError):  # no judge of ours has written this
            return report_stop(exercise, {"stop": "interfered"})

    def try_faults(self, exercise: Exercise, seeds: Sequence[int]) -> FaultTrials:
        """Grade the solution and the faults of an exercise, all in one process, with some seeds.

        They are not shut in: nobody but the author of an exercise may ask for it.
        """
        answer = self._ask_about(exercise, {"seeds": list(seeds)})
        trials = [
            FaultTrial(each["subject"], each["seed"], GradingReport.from_data(each["report"]))
            for each in answer.get("trials", [])
        ]
        begun = answer.get("stopped", {"begin": SOLUTION, "seed": seeds[0]})
        if begun is None:
            return FaultTrials(tuple(trials))
        stop = {"stop": "time"} if answer.get("late") else _explain_end(answer["died"])
        stop = begun.get("stop", stop)
        stopped = FaultTrial(begun["begin"], begun["seed"], report_stop(exercise, stop))
        return FaultTrials(tuple(trials), stopped)

    def _ask_about(self, exercise: Exercise, request: dict[str, Any]) -> dict[str, Any]:
        request |= {
            "folder": str(exercise.folder),
            "seconds": exercise.seconds,
            "entry": exercise.entry,
            "forbid": exercise.forbid,
            "kit": None if exercise.kit is None else str(exercise.kit),
        }
        answer = self._ask(json.dumps(request))
        if "error" in answer:
            raise GradingError(f"The exercise {exercise.name} cannot be graded: {answer['error']}")
        return answer

    def _ask(self, request: str) -> dict[str, Any]:
        code = 0
        with self._lock:
            for _ in range(2):
                server = self._server
                assert server.stdin is not None and server.stdout is not None
                try:
                    server.stdin.write(request + "\n")
                    server.stdin.flush()
                    line = server.stdout.readline()
                    if line and isinstance(answer := json.loads(line), dict):
                        return answer
                except (BrokenPipeError, ValueError):
                    pass
                if self._closed:
                    break
                code = self._end()
                self._server = self._start()
        if code < 0:  # twice by a signal: it is the learner's code that sends it
            return {"died": code}
        raise GradingError("The process that grades has ended. Start again.")

    def _end(self) -> int:
        server = self._server
        for stream in (server.stdin, server.stdout):
            with contextlib.suppress(BrokenPipeError):
                if stream is not None:
                    stream.close()
        return server.wait()

    def close(self) -> None:
        """End the process that grades, and a grading that is under way with it."""
        self._closed = True
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self._server.pid, signal.SIGTERM)
        with self._lock:
            self._end()

    def __enter__(self) -> "Grader":
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()


def draw_seed() -> int:
    """A seed that nobody knows before."""
    return secrets.randbits(31)


def _explain_end(code: int) -> dict[str, Any]:
    """Why a process is gone that ended with a code, or by a signal if it is negative."""
    return {"stop": "died", "message": signal.Signals(-code).name if code < 0 else ""}


def _read_source(path: Path) -> str:
    """What is in a learner's file, if it is a file: a pipe would keep us waiting."""
    about = path.stat()
    wrong = 0
    if not stat.S_ISREG(about.st_mode):
        wrong = EISDIR if stat.S_ISDIR(about.st_mode) else EINVAL
    elif about.st_size > _MOST_SOURCE:
        wrong = EFBIG
    if wrong:
        raise OSError(wrong, os.strerror(wrong))
    return path.read_text("utf-8-sig")  # some editors put a mark before UTF-8
