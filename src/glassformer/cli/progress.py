"""A progress bar on standard error, for whatever takes longer than a moment."""

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from rich.console import Console

ProgressCallback = Callable[[float | int], None]


@contextmanager
def progress_bar(
    label: str, *, total: float | int | None = 1.0, done: int = 0, is_counted: bool = False
) -> Iterator[ProgressCallback]:
    """A callback that shows how much is done, where standard error is a terminal.

    The bar is gone afterwards. It only pulses where no `total` is known; `is_counted` shows how
    many of how many instead of the share, and `done` is how many were done before.
    """
    if not sys.stderr.isatty():
        yield lambda _: None
        return
    from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn

    columns = [TextColumn(label), BarColumn(bar_width=40)]
    if is_counted:
        columns.append(TextColumn("{task.completed:.0f}/{task.total:.0f}"))
    elif total is not None:
        columns.append(TextColumn("{task.percentage:.0f} %"))
    with Progress(
        *columns,
        TimeRemainingColumn(),
        console=Console(stderr=True, highlight=False, markup=False),
        transient=True,
        redirect_stdout=False,  # results go where they belong
    ) as shown:
        task = shown.add_task("", total=total, completed=done)
        yield lambda done: shown.update(task, completed=done)
