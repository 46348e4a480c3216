"""Ctrl-C and SIGTERM: the step is finished, the run saved, and then left."""

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any


class Interrupted(KeyboardInterrupt):
    """A run that was told to stop, and has saved itself; its text says how to go on."""


class Bell:
    """Whether somebody asked to stop."""

    def __init__(self) -> None:
        self.rang = False

    @contextmanager
    def listening(self) -> Iterator["Bell"]:
        """Hear of signals instead of being ended by them; a second one ends at once."""
        if threading.current_thread() is not threading.main_thread():
            yield self  # signals reach the main thread alone
            return
        before = {s: signal.signal(s, self._ring) for s in (signal.SIGINT, signal.SIGTERM)}
        try:
            yield self
        finally:
            for number, handler in before.items():
                signal.signal(number, handler)

    def _ring(self, number: int, frame: Any) -> None:
        del number, frame
        if self.rang:
            raise KeyboardInterrupt
        self.rang = True
