"""A process that has torch loaded and forks for every grading, so that none waits for imports.

Requests and answers are lines of JSON on its standard input and output. It runs no code of
exercises itself: what it forks from stays clean. `bootstrap` starts it.
"""

import contextlib
import gc
import importlib
import json
import os
import selectors
import signal
import sys
import time
import traceback
from dataclasses import replace
from pathlib import Path
from typing import Any

import torch

from glassformer.school.practice.exercise import Exercise, read_exercise
from glassformer.school.practice.forbidden import CallGuard
from glassformer.school.practice.isolation import readable_paths
from glassformer.school.practice.limits import PATIENCE
from glassformer.school.practice.trial import grade_here

# Parts of torch that import its compiler, and ways in which that fails behind closed doors.
_COMPILED = ("optim", "compile", "vmap", "torch.func", "checkpoint", "flop_counter")
_STOPPED = ("blocked", "time", "import", "raised", "died", "memory")
_MOST_JUDGING = 60.0  # seconds, beyond the learner's own, before a judge is given up


def serve() -> None:
    """Answer requests until the other side closes."""
    torch.set_num_threads(1)  # small tensors; and threads do not survive a fork
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    answers = os.dup(1)
    os.dup2(2, 1)  # nothing that is printed may come among the answers
    with CallGuard(["softmax"]):
        torch.ones(2, 3).double()  # the first use of a mode prepares much of torch
    readable_paths()  # looked up once, not in every child
    _keep_pages()
    has_compiler = False
    for line in sys.stdin:
        request = json.loads(line)
        if not has_compiler and any(word in request["source"] for word in _COMPILED):
            has_compiler = _load_compiler()
        answer = _grade_in_fork(request)
        if not has_compiler and answer.get("report", {}).get("kind") in _STOPPED:
            has_compiler = _load_compiler()
            answer = _grade_in_fork(request)
        _write(answers, json.dumps(answer).encode() + b"\n")
        has_compiler = has_compiler or _load_compiler()  # nobody waits for it now


def _load_compiler() -> bool:
    """Import what parts of torch import late, and a learner's process may not read any more.

    It takes as long as the rest of torch. The first grading does without it where it can.
    """
    importlib.import_module("torch._dynamo")
    _keep_pages()
    return True


def _keep_pages() -> None:
    gc.collect()
    gc.freeze()  # children share these pages as long as nobody touches them


def _grade_in_fork(request: dict[str, Any]) -> dict[str, Any]:
    read_end, write_end = os.pipe()
    pid = os.fork()
    if pid == 0:
        os.close(read_end)
        _run_judge(request, write_end)
    os.close(write_end)
    data = _read_all(read_end, pid, _MOST_JUDGING + PATIENCE * request["seconds"])
    os.close(read_end)
    _, status = os.waitpid(pid, 0)
    try:
        return json.loads(data)
    except ValueError:  # the judge is gone: most likely the learner's code has ended it
        return {"died": os.waitstatus_to_exitcode(status)}


def _run_judge(request: dict[str, Any], write_end: int) -> None:
    """The life of the judge's process; it never returns."""
    try:
        exercise = _read_request(request)
        report = grade_here(exercise, Path(request["path"]), request["source"], request["seed"])
        answer = {"report": report.as_data()}
    except BaseException:
        answer = {"error": traceback.format_exc()}
    try:
        _write(write_end, json.dumps(answer).encode())
    finally:
        os._exit(0)


def _read_request(request: dict[str, Any]) -> Exercise:
    """The exercise to grade, with what was changed of it for this once."""
    return replace(
        read_exercise(Path(request["folder"])),
        seconds=request["seconds"],
        entry=tuple(request["entry"]),
        forbid=tuple(request["forbid"]),
        kit=None if request["kit"] is None else Path(request["kit"]),
    )


def _read_all(read_end: int, pid: int, seconds: float) -> bytes:
    deadline = time.monotonic() + seconds
    data = bytearray()
    with selectors.DefaultSelector() as selector:
        selector.register(read_end, selectors.EVENT_READ)
        while selector.select(max(deadline - time.monotonic(), 0)):
            part = os.read(read_end, 1 << 16)
            if not part:
                return bytes(data)
            data += part
    with contextlib.suppress(ProcessLookupError):
        os.kill(pid, signal.SIGKILL)
    return b""


def _write(end: int, data: bytes) -> None:
    while data:
        data = data[os.write(end, data) :]
