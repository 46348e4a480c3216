"""What is seen while a run runs: a bar in a terminal, plain lines elsewhere."""

import sys
import time
from collections.abc import Callable
from typing import Any, Protocol, runtime_checkable


@runtime_checkable
class Display(Protocol):
    """What the loop tells."""

    def start(self, *, step: int, steps: int) -> None: ...
    def step(self, step: int, **values: float) -> None: ...
    def tell(self, text: str) -> None: ...
    def stop(self) -> None: ...


class Silence:
    """No display at all: other processes than the first, and tests."""

    def start(self, *, step: int, steps: int) -> None:
        del step, steps

    def step(self, step: int, **values: float) -> None:
        del step, values

    def tell(self, text: str) -> None:
        del text

    def stop(self) -> None:
        pass


class Lines:
    """One line for each moment, for files and pipes."""

    def __init__(self, write: Callable[[str], Any] | None = None) -> None:
        self.write = write or (lambda text: sys.stderr.write(text + "\n"))
        self.steps = 0
        self.began = (0, 0.0)

    def start(self, *, step: int, steps: int) -> None:
        self.steps, self.began = steps, (step, time.monotonic())

    def step(self, step: int, **values: float) -> None:
        done = (step - self.began[0]) / max(1e-9, time.monotonic() - self.began[1])
        left = (self.steps - step) / done if done and self.steps else 0.0
        known = "".join(f"  {name} {shown(value)}" for name, value in values.items())
        self.write(f"step {step}/{self.steps or '?'}{known}  left {clock(left)}")

    def tell(self, text: str) -> None:
        self.write(text)

    def stop(self) -> None:
        pass


class Bar:
    """A bar with loss, speed and remaining time."""

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

    def step(self, step: int, **values: float) -> None:
        known = "  ".join(f"{name} {shown(value)}" for name, value in values.items())
        self.progress.update(self.task, completed=step, values=known)

    def tell(self, text: str) -> None:
        self.progress.console.print(text)

    def stop(self) -> None:
        self.progress.stop()


def display() -> Display:
    """A bar where standard error is a terminal, else lines."""
    return Bar() if sys.stderr.isatty() else Lines()


def shown(value: float) -> str:
    """A number with as many digits as one can read.

    >>> shown(7.31234), shown(81234.0), shown(0.000125)
    ('7.312', '81,234', '0.000125')
    """
    if abs(value) >= 1000:
        return f"{value:,.0f}"
    return f"{value:.4g}"


def clock(seconds: float) -> str:
    """Hours, minutes and seconds.

    >>> clock(3725.0)
    '1:02:05'
    """
    whole = int(seconds)
    return f"{whole // 3600}:{whole % 3600 // 60:02d}:{whole % 60:02d}"
