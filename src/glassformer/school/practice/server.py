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
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import torch

from glassformer.school.practice.exercise import Exercise, read_exercise
from glassformer.school.practice.fault_trials import try_faults
from glassformer.school.practice.forbidden import CallGuard
from glassformer.school.practice.isolation import readable_paths
from glassformer.school.practice.limits import PATIENCE
from glassformer.school.practice.report import SOLUTION
from glassformer.school.practice.runner import make_sender
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
        if "seeds" in request:
            answer = _try_faults_in_fork(request)
        else:
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
    data, code, _ = _run_in_fork(_run_judge, request)
    try:
        return json.loads(data)
    except ValueError:  # the judge is gone: most likely the learner's code has ended it
        return {"died": code}


def _try_faults_in_fork(request: dict[str, Any]) -> dict[str, Any]:
    data, code, is_late = _run_in_fork(_run_fault_trials, request, renews=True)
    *lines, _ = data.split(b"\n")  # the last is empty, or cut off
    messages = [json.loads(line) for line in lines]
    match messages:
        case [*_, {"error": _} as error]:
            return error
        case [*_, {"done": _}]:
            begun = None
        case _:
            first = {"begin": SOLUTION, "seed": request["seeds"][0]}
            begun = next((each for each in reversed(messages) if "begin" in each), first)
    trials = [message for message in messages if "report" in message]
    return {"trials": trials, "stopped": begun, "died": code, "late": is_late}


def _run_in_fork(
    run: Callable[[dict[str, Any], int], None], request: dict[str, Any], *, renews: bool = False
) -> tuple[bytes, int, bool]:
    """What a process writes, the code it ends with, and whether it had to be ended for the time.

    It has its time once, or again after everything it writes.
    """
    read_end, write_end = os.pipe()
    pid = os.fork()
    if pid == 0:
        os.close(read_end)
        run(request, write_end)
    os.close(write_end)
    seconds = _MOST_JUDGING + PATIENCE * request["seconds"]
    data, is_late = _read_all(read_end, pid, seconds, renews=renews)
    os.close(read_end)
    _, status = os.waitpid(pid, 0)
    return data, os.waitstatus_to_exitcode(status), is_late


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


def _run_fault_trials(request: dict[str, Any], write_end: int) -> None:
    """The life of the process that tries faults; it never returns."""
    send = make_sender(write_end)
    try:
        nothing = os.open(os.devnull, os.O_RDONLY)
        os.dup2(nothing, 0)  # the requests that follow are not for a fault to read
        sys.stdin = os.fdopen(0, "r", closefd=False)
        try_faults(_read_request(request), request["seeds"], send)
    except BaseException:
        send({"error": traceback.format_exc()})
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


def _read_all(read_end: int, pid: int, seconds: float, *, renews: bool) -> tuple[bytes, bool]:
    deadline = time.monotonic() + seconds
    data = bytearray()
    with selectors.DefaultSelector() as selector:
        selector.register(read_end, selectors.EVENT_READ)
        while selector.select(max(deadline - time.monotonic(), 0)):
            part = os.read(read_end, 1 << 16)
            if not part:
                return bytes(data), False
            data += part
            if renews:
                deadline = time.monotonic() + seconds
    with contextlib.suppress(ProcessLookupError):
        os.kill(pid, signal.SIGKILL)
    return bytes(data), True


def _write(end: int, data: bytes) -> None:
    while data:
        data = data[os.write(end, data) :]
