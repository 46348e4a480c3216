"""Which of two ways is faster on this processor: measured once, and kept in the user's cache.

Each question has a file. The first process that answers it decides for all others, so that the
same call gives the same bits in every process of a machine.
"""

import hashlib
import json
import os
import tempfile
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

import torch

from glassformer.compilation import describe_chip, find_cache

ROUNDS, LONGEST = 25, 0.1  # in turns; seconds after which two rounds must do
_lock = threading.Lock()
_answers: dict[str, "Timing"] = {}


class Timing(NamedTuple):
    """Seconds that the same work takes in two ways; the best of some runs each."""

    ours: float
    theirs: float

    @property
    def ratio(self) -> float:
        return self.ours / self.theirs


def measure_once(
    question: str, prepare: Callable[[], tuple[Callable[[], object], Callable[[], object]]]
) -> Timing:
    """The times of two ways to do the same, taken now if nobody on this machine has done so.

    `question` says what is compared, with all that it depends on beside processor and PyTorch.
    """
    found = _answers.get(question)
    if found is not None:
        return found
    with _lock:
        path = _find_file(question)
        if question not in _answers:
            _answers[question] = _read(path) or _share(path, question, _measure(*prepare()))
        return _answers[question]


def _measure(ours: Callable[[], object], theirs: Callable[[], object]) -> Timing:
    best = [float("inf"), float("inf")]
    for work in (ours, theirs):
        work()  # the first run finds memory, and wakes threads
    start = time.perf_counter()
    for n in range(ROUNDS):
        for i, work in enumerate((ours, theirs)):
            begun = time.perf_counter()
            work()
            best[i] = min(best[i], time.perf_counter() - begun)
        if n and time.perf_counter() - start > LONGEST:
            break
    return Timing(*best)


def _find_file(question: str) -> Path:
    key = repr((question, torch.__version__, describe_chip()))
    name = hashlib.sha256(key.encode()).hexdigest()[:16]
    return find_cache() / f"timing-{name}.json"


def _read(path: Path) -> Timing | None:
    with suppress(OSError, ValueError, KeyError, TypeError):
        found = json.loads(path.read_text(encoding="utf-8"))
        timing = Timing(float(found["ours"]), float(found["theirs"]))
        return timing if min(timing) > 0 else None
    return None


def _share(path: Path, question: str, timing: Timing) -> Timing:
    """Write an answer for other processes, unless one of them was faster: then it is theirs."""
    text = json.dumps({"question": question, **timing._asdict()})
    with suppress(OSError):
        with tempfile.NamedTemporaryFile(
            "w", dir=path.parent, prefix=path.stem, delete=False, encoding="utf-8"
        ) as file:
            file.write(text)
        try:
            os.link(file.name, path)
        except FileExistsError:
            if (theirs := _read(path)) is not None:
                return theirs
            Path(file.name).replace(path)  # it held no answer
        finally:
            Path(file.name).unlink(missing_ok=True)
    return timing
