"""Progress of a measurement: how much of it is done, and the numbers that it has by then."""

from collections.abc import Iterator, Sequence
from typing import Any, Protocol, TypeVar, runtime_checkable

Thing = TypeVar("Thing")


@runtime_checkable
class ProgressCallback(Protocol):
    """Receives a share between 0 and 1, and the numbers so far where there are some.

    The numbers are still being filled: whoever wants to keep them draws or copies them at once.
    """

    def __call__(self, share: float | int, numbers: dict[str, Any] = ..., /) -> None: ...


def sub_progress(
    progress: ProgressCallback,
    start: float | int,
    stop: float | int,
    numbers: dict[str, Any] | None = None,
) -> ProgressCallback:
    """The progress of a part, as progress of the whole; it shows `numbers` each time.

    >>> sub_progress(print, 0.5, 1.0)(0.5)
    0.75
    >>> sub_progress(print, 0.5, 1.0, {"loss": [2.3]})(0.5)
    0.75 {'loss': [2.3]}
    """

    def report(share: float | int, own: dict[str, Any] | None = None, /) -> None:
        shown = numbers if own is None else own
        at = start + (stop - start) * share
        if shown is None:
            progress(at)
        else:
            progress(at, shown)

    return report


def iterate_with_progress(
    things: Sequence[Thing], progress: ProgressCallback, numbers: dict[str, Any] | None = None
) -> Iterator[tuple[Thing, ProgressCallback]]:
    """Every thing, with the progress of its own part; `numbers` are shown from the first one on.

    >>> for name, own in iterate_with_progress("ab", print):
    ...     own(1.0)
    0.0
    0.5
    0.5
    1.0
    """
    n = len(things)
    for i, thing in enumerate(things):
        own = sub_progress(progress, i / n, (i + 1) / n, numbers)
        if i == 0:
            progress(0.0)  # nothing is measured yet
        else:
            own(0.0)
        yield thing, own
