"""What a worker process does: it takes one job after another, reports progress, and can be stopped.

A job is a name and its arguments; `handle` of the module that a pool is given knows what to do. It
is called with a function that reports progress, which raises `Cancelled` where nobody waits for the
result any more; with what is known by then, if the page is to draw it. Results leave as JSON:
whoever passes them on must not spend time on them.
"""

import gc
import json
import signal
from collections.abc import Callable
from importlib import import_module
from multiprocessing.connection import Connection
from typing import Any, Literal, NamedTuple, Protocol, runtime_checkable

from glassformer.errors import GlassformerError

Progress = Callable[[float], None]
_STEP = 0.005  # by which progress is reported


@runtime_checkable
class Report(Protocol):
    """Progress from 0 to 1, and what is known of the result by then."""

    def __call__(self, share: float, partial: Any = None, /) -> None: ...


class Job(NamedTuple):
    """What a worker is to do."""

    number: int
    name: str
    arguments: dict[str, Any]


class Message(NamedTuple):
    """What a worker says about a job."""

    number: int
    kind: Literal["ready", "progress", "partial", "done", "mistake", "fault", "cancelled"]
    value: Any = None


class Cancelled(Exception):
    """Nobody waits for the result any more."""


def work(module: str, connection: Connection, stop: Any) -> None:
    """The whole life of a worker process; the first message lets it begin."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is the server's; it ends us in order
    try:
        connection.recv()
        handle = _import_handle(module)
        connection.send(Message(0, "ready"))
        while True:
            job: Job = connection.recv()
            connection.send(_do(job, handle, connection, stop))
    except (EOFError, OSError):  # the server has ended
        return


def _import_handle(module: str) -> Callable[[str, dict[str, Any], Report], Any]:
    gc.disable()  # modules are kept: looking through them for garbage takes a tenth of the start
    try:
        return import_module(module).handle
    finally:
        gc.freeze()
        gc.enable()


def _do(
    job: Job,
    handle: Callable[[str, dict[str, Any], Report], Any],
    connection: Connection,
    stop: Any,
) -> Message:
    last = -1.0

    def report(share: float, partial: Any = None, /) -> None:
        nonlocal last
        if stop.value == job.number:
            raise Cancelled
        if abs(share - last) >= _STEP:  # what nobody would see is not said
            last = share
            connection.send(Message(job.number, "progress", share))
        if partial is not None:
            connection.send(Message(job.number, "partial", _pack(partial)))

    try:
        found = handle(job.name, job.arguments, report)
        return Message(job.number, "done", _pack(found))
    except Cancelled:
        return Message(job.number, "cancelled")
    except GlassformerError as error:
        return Message(job.number, "mistake", str(error))
    except Exception as error:  # whatever it was, the worker lives on
        return Message(job.number, "fault", f"{type(error).__name__}: {error}")


def _pack(value: Any) -> bytes:
    return json.dumps(value, allow_nan=False).encode()
