"""What is shown during a run: a progress bar in a terminal, plain lines elsewhere."""

import sys
import time
from collections.abc import Callable
from typing import Any, Protocol, runtime_checkable


@runtime_checkable
class Display(Protocol):
    """The interface that the training loop reports to."""

    def start(self, *, step: int, steps: int) -> None: ...
    def expect(self, steps: int) -> None: ...
    def step(self, step: int, **values: float) -> None: ...
    def announce(self, text: str) -> None: ...
    def stop(self) -> None: ...


class SilentDisplay:
    """No output: for tests, and for all processes but the first."""

    def start(self, *, step: int, steps: int) -> None:
        del step, steps

    def expect(self, steps: int) -> None:
        del steps

    def step(self, step: int, **values: float) -> None:
        del step, values

    def announce(self, text: str) -> None:
        del text

    def stop(self) -> None:
        pass


class LineDisplay:
    """A line for each report, for files and pipes."""

    def __init__(self, write: Callable[[str], Any] | None = None) -> None:
        self.write = write or (lambda text: sys.stderr.write(text + "\n"))
        self.steps = 0
        self.began = (0, 0.0)

    def start(self, *, step: int, steps: int) -> None:
        self.steps, self.began = steps, (step, time.monotonic())

    def expect(self, steps: int) -> None:
        self.steps = steps

    def step(self, step: int, **values: float) -> None:
        speed = (step - self.began[0]) / max(1e-9, time.monotonic() - self.began[1])
        left = (self.steps - step) / speed if speed and self.steps else 0.0
        known = "".join(f"  {name} {format_number(value)}" for name, value in values.items())
        self.write(f"step {step}/{self.steps or '?'}{known}  left {format_duration(left)}")

    def announce(self, text: str) -> None:
        self.write(text)

    def stop(self) -> None:
        pass


class BarDisplay:
    """A progress bar with loss, speed and remaining time."""

    def __init__(self) -> None:
        from rich.console import Console
        from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn

        self.progress = Progress(
            TextColumn("{task.completed}/{task.total}"),
            BarColumn(bar_width=24),
            TextColumn("{task.fields[values]}"),
            TimeRemainingColumn(),
            console=Console(stderr=True, highlight=False, markup=False),
        )
        self.task: Any = None

    def start(self, *, step: int, steps: int) -> None:
        self.task = self.progress.add_task("", total=steps or None, completed=step, values="")
        self.progress.start()

    def expect(self, steps: int) -> None:
        self.progress.update(self.task, total=steps or None)

    def step(self, step: int, **values: float) -> None:
        known = "  ".join(f"{name} {format_number(value)}" for name, value in values.items())
        self.progress.update(self.task, completed=step, values=known)

    def announce(self, text: str) -> None:
        self.progress.console.print(text)

    def stop(self) -> None:
        self.progress.stop()


def choose_display() -> Display:
    """A bar if standard error is a terminal, lines otherwise."""
    return BarDisplay() if sys.stderr.isatty() else LineDisplay()


def format_number(value: float) -> str:
    """A number with a readable number of digits.

    >>> format_number(7.31234), format_number(81234.0), format_number(0.000125)
    ('7.312', '81,234', '0.000125')
    """
    if abs(value) >= 1000:
        return f"{value:,.0f}"
    return f"{value:.4g}"


def format_duration(seconds: float) -> str:
    """Hours, minutes and seconds.

    >>> format_duration(3725.0)
    '1:02:05'
    """
    whole = int(seconds)
    return f"{whole // 3600}:{whole % 3600 // 60:02d}:{whole % 60:02d}"
