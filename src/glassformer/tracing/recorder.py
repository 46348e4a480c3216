"""The frame of every recording: attach, let the model run, undo, put together, warn once.

Whatever a recorder does in here is guarded. The model is as it was when the context is left, also
if the body has failed; the body's own error goes on unchanged.
"""

import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from typing import Protocol, runtime_checkable

from torch import nn

from glassformer.errors import RecordingWarning
from glassformer.tracing.compilation import compiled_parts, switch_compiling_off
from glassformer.tracing.guard import Guard, enumerate_some
from glassformer.tracing.trace import Run, Trace


@runtime_checkable
class Recorder(Protocol):
    """What `recording` asks of those who record."""

    name: str  # of the model
    guard: Guard

    @property
    def trace(self) -> Trace:
        """What has been recorded so far."""
        ...

    def attach(self, undo: list[Callable[[], None]]) -> None:
        """Listen to the model; what is put into `undo` ends it."""
        ...

    def refuse_all(self, reason: str) -> None:
        """Show nothing of the present run: a fault does not concern one site alone."""
        ...

    def close(self) -> None:
        """Put together what was recorded."""
        ...


@contextmanager
def recording(recorder: Recorder, model: nn.Module) -> Iterator[Trace]:
    """Record until the context is left; then undo everything and warn once of what failed."""
    guard, undo = recorder.guard, []
    catching = partial(guard.catching, recorder.name, recorder.refuse_all)
    is_failing = True
    try:
        parts: list[str] = []
        with catching():
            parts = compiled_parts(model)
        if parts:
            note = f"{enumerate_some(parts)} compiled, but run uncompiled while recorded"
            recorder.trace.model["note"] = note
            warnings.warn(f"{guard.verb}: {note}.", RecordingWarning, stacklevel=5)
        with catching():
            if parts:
                undo.append(switch_compiling_off())
            recorder.attach(undo)
        yield recorder.trace
        is_failing = False
    finally:
        for each in reversed(undo):
            with catching():
                each()
        with catching():
            recorder.close()
        _refuse_rest(recorder.trace.recorded, guard)
        guard.show(is_failing=is_failing)


def _refuse_rest(runs: list[Run], guard: Guard) -> None:
    """What the recorder could not refuse any more is refused here: each fault has its reason."""
    reasons = {reason for run in runs for reason in run.refusals.values()}
    rest = {name: why for name, why in guard.faults.items() if why not in reasons}
    if rest and not runs:
        runs.append(Run())
    if rest:
        runs[-1].refusals |= rest
