"""The learner's process: runs the file case by case and sends each outcome.

It never sees the solution. Every message is one line of JSON on a pipe of its own; what the
learner prints goes elsewhere.
"""

import ast
import builtins
import copy
import importlib
import json
import linecache
import os
import random
import sys
import traceback
import types
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, nullcontext, suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from glassformer.school.practice.call_trail import Trail
from glassformer.school.practice.capstone.kit_cases import load_kit_cases
from glassformer.school.practice.cases import Case
from glassformer.school.practice.exercise import EXERCISES, Exercise
from glassformer.school.practice.forbidden import (
    SWITCHES,
    CallGuard,
    Forbidden,
    find_forbidden,
    find_missing,
    forbidden_packages,
)
from glassformer.school.practice.isolation import isolate
from glassformer.school.practice.limits import (
    AuditGuard,
    Blocked,
    TimeUp,
    address_space,
    apply_limits,
    forget_package,
    refuse_threads,
    start_clock,
    stop_clock,
)
from glassformer.school.practice.messages import MOST_NAMES, one_line, read_outcome
from glassformer.school.practice.module_source import load_source
from glassformer.school.practice.originals import Originals
from glassformer.school.practice.outcome import Outcome
from glassformer.school.practice.plain_values import TooLarge, to_plain
from glassformer.school.practice.random_inputs import Draw
from glassformer.school.practice.repair_search import REPAIR_SECONDS, find_repairs
from glassformer.school.practice.weights_probe import make_probe


def load_cases(exercise: Exercise, seed: int) -> types.GeneratorType:
    """The cases of an exercise, their inputs drawn from a seed, or from a model's activations."""
    if exercise.kit is not None:
        return load_kit_cases(exercise.kit)
    path = exercise.folder / "checks.py"
    module = load_source(path.read_text("utf-8"), str(path), f"checks_{exercise.name}")
    return module.cases(Draw(seed))


def run_case(case: Case, module: Any, forbid: tuple[str, ...] = ()) -> Outcome:
    """What a module makes of a case; errors are outcomes too."""
    inputs = copy.deepcopy(dict(case.inputs))
    before = copy.deepcopy(inputs)
    seed_everything()
    try:
        with CallGuard(forbid) as stop:
            result = case.call(module, **inputs)
        if stop.seen:
            raise Forbidden(stop.seen[0])
        if any(not _is_unchanged(before[name], inputs[name]) for name in before):
            changed = next(name for name in before if not _is_unchanged(before[name], inputs[name]))
            return Outcome(failure="changed", message=changed)
        return Outcome(to_plain(result))
    except TooLarge:
        return Outcome(failure="large")
    except MemoryError:
        raise
    except Exception as error:
        return Outcome(failure="raised", error=_error_name(error), message=_first_line(error))


def seed_everything() -> None:
    """Learner, solution and faults see the same random numbers; nobody knows which."""
    torch.default_generator.manual_seed(0)  # torch.manual_seed also asks every absent device
    np.random.seed(0)
    random.seed(0)


def _is_unchanged(one: Any, other: Any) -> bool:
    if isinstance(one, Tensor):
        if one.shape != other.shape:
            return False
        return bool(((one == other) | (one.isnan() & other.isnan())).all())
    if isinstance(one, np.ndarray):
        return one.shape == other.shape and np.array_equal(one, other, equal_nan=True)
    if isinstance(one, list | tuple):
        return len(one) == len(other) and all(map(_is_unchanged, one, other))
    return True


def run_learner(
    exercise: Exercise,
    path: Path,
    source: str,
    seed: int,
    send: Callable[[dict[str, Any]], None],
    *,
    traced: int = -1,
    expected: Sequence[Outcome] = (),
) -> None:
    """Run a learner's file in this process, which is ended afterwards.

    With the number of a case, only up to that one, and its steps are sent; and the small change
    of the file after which it does what is expected, if that is given and there is one.
    """
    file = str(path)
    if stop := find_refusal(exercise, file, source):
        send(stop)
        return
    cases = load_cases(exercise, seed)
    linecache.cache[file] = (len(source), None, source.splitlines(keepends=True), file)
    # torch looks up the lines of a stack now and then; that is no reading of solutions.
    linecache.getlines(str(exercise.folder / "checks.py"))
    warnings.simplefilter("ignore")
    space = address_space()  # read from /proc, which is closed afterwards
    layers = isolate()
    watch = AuditGuard(closed=(EXERCISES,))
    sys.addaudithook(watch)
    refuse_threads(watch)
    # torch.save writes past any audit.
    torch._C.__dict__["PyTorchFileWriter"] = lambda *_, **__: watch.refuse("files")
    ours = [vars(module) for name, module in sys.modules.items() if _is_ours(name)]
    forget_package("glassformer")
    packages = forbidden_packages(exercise.forbid)
    builtins.__import__ = _guard_import(builtins.__import__, packages)
    importlib.import_module = _guard_import(importlib.import_module, packages)
    sys.meta_path.insert(0, _Finder(packages))
    assert cases.gi_frame is not None  # it has not begun yet
    originals = Originals([*ours, cases.gi_frame.f_globals])
    extra = REPAIR_SECONDS if expected else 0.0
    apply_limits(exercise.seconds + extra, space)
    send({"ready": list(layers)})  # up to here nothing of the learner's has run
    with _sending_stop(file, watch, send):
        if traced < 0:
            _run_cases(exercise, source, file, cases, watch, originals, send)
        else:
            _run_traced(exercise, source, file, list(cases), watch, send, traced, expected)


def run_trusted(
    exercise: Exercise, source: str, cases: Sequence[Case], watch: AuditGuard
) -> tuple[list[Outcome], dict[str, Any] | None]:
    """Run code of our own as run_learner would, in a process that goes on: outcomes, and a stop.

    `watch` is an audit hook of this process already. No other wall is put up.
    """
    file, sent = exercise.file_name, list[dict[str, Any]]()
    start_clock(exercise.seconds)
    try:
        with _sending_stop(file, watch, sent.append):
            _run_cases(exercise, source, file, iter(cases), watch, None, sent.append)
    finally:
        stop_clock()
        watch.is_on = False
        watch.tried.clear()
    got = [read_outcome(message["outcome"]) for message in sent if "outcome" in message]
    begun = any("begin" in message for message in sent)
    stop = next(({**message, "begun": begun} for message in sent if "stop" in message), None)
    return got, stop


@contextmanager
def _sending_stop(
    file: str, watch: AuditGuard, send: Callable[[dict[str, Any]], None]
) -> Iterator[None]:
    """Send why the code that runs within did not reach its end."""
    try:
        yield
    except TimeUp as error:
        send({"stop": "time", "line": find_line(file, error)})
    except Forbidden as error:
        message = one_line(error.name)
        send({"stop": "forbidden", "message": message, "line": find_line(file, error)})
    except (SystemExit, KeyboardInterrupt, GeneratorExit) as error:
        send({"stop": "exit", "line": find_line(file, error)})
    except MemoryError as error:
        send({"stop": "memory", "line": find_line(file, error)})
    except BaseException as error:
        line = find_line(file, error)
        if watch.tried:
            send({"stop": "blocked", "message": watch.tried[0], "line": line})
        elif is_out_of_memory(error):
            send({"stop": "memory", "line": line})
        else:
            # What is no Exception goes through a case as well, and then it is not the import's.
            stop = "import" if isinstance(error, Exception) else "raised"
            values = {"error": _error_name(error), "message": _first_line(error)}
            send({"stop": stop, **values, "line": line})


def find_refusal(exercise: Exercise, file: str, source: str) -> dict[str, Any] | None:
    """Why a source is not even run."""
    try:
        # compile too: `return` outside of a function is found by it alone.
        tree = ast.parse(source, file)
        compile(source, file, "exec")
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
        line = getattr(error, "lineno", None)
        message = _first_line(error) or _error_name(error)
        return {"stop": "syntax", "message": message, "line": line or None}
    if forbidden := find_forbidden(tree, exercise.forbid):
        return {"stop": "forbidden", "message": forbidden[0], "line": forbidden[1]}
    if switch := find_forbidden(tree, SWITCHES):
        return {"stop": "switched", "message": switch[0], "line": switch[1]}
    if name := find_missing(tree, exercise.require):
        return {"stop": "required", "message": name}
    return None


def _is_ours(name: str) -> bool:
    return name.split(".", 1)[0] == "glassformer"


def _run_cases(
    exercise: Exercise,
    source: str,
    file: str,
    cases: Iterator[Case],
    watch: AuditGuard,
    originals: Originals | None,
    send: Callable[[dict[str, Any]], None],
) -> None:
    module = _load_learner(exercise, source, file, watch)
    for name in exercise.entry:
        if not hasattr(module, name):
            names = [one_line(n) for n in vars(module) if not n.startswith("_")]
            send({"stop": "missing", "message": name, "names": names[:MOST_NAMES]})
            return
    for number, case in enumerate(cases):
        send({"begin": number})
        outcome = _run_learner_case(case, module, exercise.forbid, file)
        if watch.tried:
            send({"stop": "blocked", "message": watch.tried[0], "line": outcome.line})
            return
        if originals is not None and (replaced := originals.find_replaced()):
            send({"stop": "replaced", "message": replaced})
            return
        send({"case": number, "outcome": outcome.as_data()})
    stop_clock()
    send({"done": True})


def _load_learner(exercise: Exercise, source: str, file: str, watch: AuditGuard) -> Any:
    watch.is_on = True  # and so it stays: what learner's code leaves behind runs at any time
    seed_everything()
    with CallGuard(exercise.forbid) as stop:
        module = load_source(source, file, "learner")
    if stop.seen:
        raise Forbidden(stop.seen[0])
    if watch.tried:
        raise Blocked(watch.tried[0])
    return module


def _run_traced(
    exercise: Exercise,
    source: str,
    file: str,
    cases: Sequence[Case],
    watch: AuditGuard,
    send: Callable[[dict[str, Any]], None],
    traced: int,
    expected: Sequence[Outcome],
) -> None:
    """One case once more, step by step, and what repairs it; sent at the end in one message."""
    module = _load_learner(exercise, source, file, watch)
    for case in cases[:traced]:
        _run_learner_case(case, module, exercise.forbid, file)
    case, trail = cases[traced], Trail(file)
    _run_learner_case(case, module, exercise.forbid, file, trail)
    probe = make_probe(case)
    weights = None if probe is None else _run_learner_case(probe, module, exercise.forbid, file)
    repairs: list[int] = []
    if expected:
        about = (source, file, cases, expected, traced)
        with suppress(TimeUp):
            repairs = find_repairs(*about, exercise.forbid, run_case)
    stop_clock()
    steps = [step.as_data() for step in trail.steps]
    shown = None if weights is None else weights.as_data()
    send({"trail": steps, "weights": shown, "repairs": repairs})


def _run_learner_case(
    case: Case, module: Any, forbid: tuple[str, ...], file: str, trail: Trail | None = None
) -> Outcome:
    """As run_case, with the learner's own line for what he raised."""
    line: int | None = None

    def call(module: Any, **inputs: Any) -> Any:
        nonlocal line
        try:
            with trail or nullcontext():
                return case.call(module, **inputs)
        except Exception as error:
            line = find_line(file, error)
            if is_out_of_memory(error):
                raise TooMuch(line) from error
            raise

    try:
        outcome = run_case(replace(case, call=call), module, forbid)
    except RecursionError:
        outcome = Outcome(failure="raised", error="RecursionError", message="")
    return replace(outcome, line=line)


class TooMuch(MemoryError):
    """Memory ran out, whatever torch calls it."""


def is_out_of_memory(error: BaseException) -> bool:
    said = str(error)
    phrases = ("can't allocate memory", "not enough memory")  # torch has both
    return isinstance(error, MemoryError) or any(phrase in said for phrase in phrases)


def find_line(file: str, error: BaseException) -> int | None:
    """The last line of the learner's file in an error's traceback."""
    while isinstance(error, TooMuch) and error.__cause__ is not None:
        error = error.__cause__
    lines = [
        line
        for frame, line in traceback.walk_tb(error.__traceback__)
        if frame.f_code.co_filename == file
    ]
    return lines[-1] if lines else None


def _guard_import(real: Callable[..., Any], packages: tuple[str, ...]) -> Callable[..., Any]:
    def import_if_allowed(name: str, *args: Any, **kwargs: Any) -> Any:
        frame = sys._getframe(1)
        if frame.f_globals.get("__name__") == "learner" and name.split(".", 1)[0] in packages:
            raise Forbidden(name)
        return real(name, *args, **kwargs)

    return import_if_allowed


class _Finder:
    """Refuses packages to whoever asks for them other than by an import statement."""

    def __init__(self, packages: tuple[str, ...]) -> None:
        self.packages = packages

    def find_spec(self, name: str, *_: Any) -> None:
        if name.split(".", 1)[0] in self.packages:
            raise Forbidden(name)


def _first_line(error: BaseException) -> str:
    """What an error says, in one short line."""
    try:
        return one_line(error.msg if isinstance(error, SyntaxError) else str(error))
    except Exception:  # an error of the learner's own may fail to say anything
        return ""


def _error_name(error: BaseException) -> str:
    """What an error is called; a class of the learner's own may be called anything."""
    return one_line(type.__getattribute__(type(error), "__name__"))


def make_sender(descriptor: int) -> Callable[[dict[str, Any]], None]:
    """A function that writes messages to a pipe."""

    def send(message: dict[str, Any]) -> None:
        data = json.dumps(message).encode() + b"\n"
        while data:
            data = data[os.write(descriptor, data) :]

    return send
