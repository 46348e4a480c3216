"""Progress of a measurement: a callback that receives a share between 0 and 1."""

from collections.abc import Callable, Iterator, Sequence
from typing import TypeVar

ProgressCallback = Callable[[float | int], None]
Thing = TypeVar("Thing")


def sub_progress(
    progress: ProgressCallback, start: float | int, stop: float | int
) -> ProgressCallback:
    """The progress of a part, as progress of the whole.

    >>> sub_progress(print, 0.5, 1.0)(0.5)
    0.75
    """
    return lambda share: progress(start + (stop - start) * share)


def iterate_with_progress(
    things: Sequence[Thing], progress: ProgressCallback
) -> Iterator[tuple[Thing, ProgressCallback]]:
    """Every thing, with the progress of its own part.

    >>> for name, own in iterate_with_progress("ab", print):
    ...     own(1.0)
    0.0
    0.5
    0.5
    1.0
    """
    n = len(things)
    for i, thing in enumerate(things):
        own = sub_progress(progress, i / n, (i + 1) / n)
        own(0.0)
        yield thing, own
