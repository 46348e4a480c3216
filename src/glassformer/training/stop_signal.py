"""Ctrl-C and SIGTERM: finish the step, save the run, then stop."""

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any


class TrainingInterrupted(KeyboardInterrupt):
    """A run that was asked to stop and has saved itself; its text says how to resume."""


class StopSignal:
    """Whether the run was asked to stop."""

    def __init__(self) -> None:
        self.is_set = False

    @contextmanager
    def catch(self) -> Iterator["StopSignal"]:
        """Note the signals instead of ending; a second one ends the process at once."""
        if threading.current_thread() is not threading.main_thread():
            yield self  # Python delivers signals to the main thread only
            return
        before = {s: signal.signal(s, self._handle) for s in (signal.SIGINT, signal.SIGTERM)}
        try:
            yield self
        finally:
            for number, handler in before.items():
                signal.signal(number, handler)

    def _handle(self, number: int, frame: Any) -> None:
        del number, frame
        if self.is_set:
            raise KeyboardInterrupt
        self.is_set = True
