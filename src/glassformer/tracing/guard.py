"""Faults of the recorder: the model continues, the site is refused, one warning is shown.

Everything that the recorder does while a model runs happens inside `Guard.catch`. A fault there is
kept as a sentence, which refuses the site and is shown once, when the context is left. Only
`Exception` is caught: Ctrl-C ends the run as always.
"""

import traceback
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from glassformer.errors import GlassformerError, RecordingWarning


class Guard:
    """Catches what goes wrong while recording.

    >>> guard, refused = Guard("gf.watch"), {}
    >>> with guard.catch("decoder.0.self", lambda reason: refused.update(why=reason)):
    ...     _ = {}["absent"]
    >>> refused["why"].partition(" (")[0]
    "an internal error, KeyError: 'absent'"
    """

    def __init__(self, verb: str) -> None:
        self.verb = verb
        self.faults: dict[str, str] = {}  # why, by the name of what was not recorded

    @contextmanager
    def catch(
        self,
        name: str,
        refuse: Callable[[str], None] | None = None,
        raising: tuple[type[Exception], ...] = (),
    ) -> Iterator[None]:
        """Whatever fails inside refuses `name`, and never reaches the caller."""
        try:
            yield
        except raising:
            raise
        except Exception as error:
            self.note(name, error, refuse)

    def note(
        self, name: str, error: Exception, refuse: Callable[[str], None] | None = None
    ) -> None:
        """Keep what has failed; for calls so many that a context around each would be felt."""
        reason = describe(error)
        self.faults.setdefault(name, reason)
        if refuse is not None:
            with suppress(Exception):
                refuse(reason)

    def warn(self, *, is_failing: bool, stacklevel: int = 6) -> None:
        """One warning for all faults; it must not hide the error of a failing body."""
        if not self.faults:
            return
        names, (first, *_) = list(self.faults), self.faults.values()
        self.faults = {}
        try:
            warnings.warn(
                f"{self.verb} could not record {enumerate_some(names)}: {first}. The model's own "
                "results are not affected; run.refusals of the trace holds the reasons.",
                RecordingWarning,
                stacklevel=stacklevel,
            )
        except RecordingWarning:  # a filter that turns warnings into errors
            if not is_failing:
                raise


def enumerate_some(names: list[str]) -> str:
    """The first three of many names.

    >>> enumerate_some(["a", "b", "c", "d", "e"])
    'a, b, c and 2 more'
    """
    return ", ".join(names[:3]) + (f" and {len(names) - 3} more" if len(names) > 3 else "")


def describe(error: Exception) -> str:
    """The reason without its full stop: our errors as they read, others with file and line."""
    text = str(error).strip().partition("\n")[0]
    if isinstance(error, GlassformerError):
        return text.rstrip(".")
    last = traceback.extract_tb(error.__traceback__)[-1]
    said = f"{type(error).__name__}: {text.rstrip('.')}" if text else type(error).__name__
    return f"an internal error, {said} ({Path(last.filename).name}, line {last.lineno})"
